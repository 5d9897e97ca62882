import type { DescFile, DescService } from "@bufbuild/protobuf";
import type { FileDescriptorProto } from "@bufbuild/protobuf/wkt";
import { refuseUnknownOptions, runSteps, withCode } from "../../http/index.ts";
import { completeFiles } from "./complete-files.ts";
import { hideRestricted, visibilityOptionNames, type VisibilityOptions } from "./hide-restricted.ts";
import { type DescribedServices, linkFiles } from "./read-descriptor-set.ts";
import { distinctFiles } from "./validate-files.ts";

/** The visible types in files, with separate descriptors. */
export interface VisibleTypes extends Pick<
  DescribedServices,
  "types" | "restricted" | "hiddenNumbers" | "hiddenRpcs" | "labels"
> {
  /** The names of all given files and their imports, including files without a visible element. */
  readonly fileNames: ReadonlySet<string>;
}

/**
 * Returns the visible types in the files that declare services or types, and in all imported files.
 *
 * @throws Error if an enum's first value is hidden, or if two files with the same name differ
 * @throws TypeError if `@grpc/proto-loader` has dropped the rules of a file
 */
export function hideInFiles(
  described: Iterable<{ readonly file: DescFile }>,
  visibility: VisibilityOptions,
): VisibleTypes {
  refuseIncomplete(described, "visibility");
  const protos = distinctFiles([...filesOf(described)].map(({ proto }) => proto));
  const { visible, ...visibilities } = runSteps(hideRestricted(protos, visibility));
  const { set } = runSteps(completeFiles(visible));
  const types = runSteps(linkFiles(set.file, () => true));
  return { types, ...visibilities, fileNames: new Set(protos.map(({ name }) => name)) };
}

/**
 * Returns services without the elements that the gateway's option `visibility` hides. Pass the result to
 * `createOpenApi` and `createReflectionService`. Hidden services are omitted.
 *
 * @throws Error if an enum's first value is hidden, because fields have this value by default
 * @throws TypeError for an invalid option, or if `@grpc/proto-loader` has dropped the rules of a service
 */
export function visibleServices(
  services: readonly DescService[],
  visibility: VisibilityOptions,
): readonly DescService[] {
  refuseUnknownOptions(visibility, visibilityOptionNames, "visibleServices");
  const { types } = hideInFiles(services, visibility);
  return services.flatMap(({ typeName }) => types.getService(typeName) ?? []);
}

/** The property of marked files. Not a unique symbol, because a program may load two copies of this module. */
const incompleteKey = Symbol.for("@protoport/gateway/incomplete");

/** Marks a file that lacks the custom options of services, messages, fields and enums, as from `@grpc/proto-loader`. */
export function markIncomplete(file: FileDescriptorProto): void {
  Object.defineProperty(file, incompleteKey, { value: true, enumerable: true });
}

/**
 * Refuses marked files, because an option of the gateway would ignore the rules that they lack.
 *
 * @param described - the services and types in the files
 * @param option - the option's name
 * @throws TypeError that names the first service in a marked file
 */
export function refuseIncomplete(
  described: Iterable<{ readonly file: DescFile }>,
  option: "validation" | "visibility",
): void {
  const incomplete = [...filesOf(described)].filter(({ proto }) => incompleteKey in proto);
  if (incomplete.length === 0) return;
  const [service]: readonly DescService[] = incomplete.flatMap(({ services }) => services);
  const name = service?.typeName ?? incomplete.map(({ proto }) => proto.name).join(", ");
  const problem =
    `option "${option}": the definition of ${name} lacks the rules of services, messages, fields and enums, because ` +
    "@grpc/proto-loader drops them; set descriptors of addGrpcJsService, addNiceGrpcService or createGatewayStrategy";
  throw withCode(new TypeError(problem), "ERR_DESCRIPTORS");
}

/** Returns the files that declare the descriptors, and their imports, recursively. */
export function filesOf(descriptors: Iterable<{ readonly file: DescFile }>): ReadonlySet<DescFile> {
  const files = new Set([...descriptors].map(({ file }) => file));
  for (const { dependencies } of files) for (const dependency of dependencies) files.add(dependency);
  return files;
}
