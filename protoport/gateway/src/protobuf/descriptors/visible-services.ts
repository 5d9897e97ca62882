import type { DescFile, DescService } from "@bufbuild/protobuf";
import { refuseUnknownOptions, runSteps } from "../../http/index.ts";
import { completeFiles } from "./complete-files.ts";
import { filesOf } from "./files-of.ts";
import { hideRestricted, type VisibilityOptions, visibilityOptionNames } from "./hide-restricted.ts";
import { refuseIncomplete } from "./incomplete-files.ts";
import { linkFiles } from "./link-files.ts";
import type { DescribedServices } from "./read-descriptor-set.ts";
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
