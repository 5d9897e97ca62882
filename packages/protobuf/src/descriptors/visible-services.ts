import type { DescFile, DescService } from "@bufbuild/protobuf";
import { runSteps } from "@plantstore/http";
import { completeFiles } from "./complete-files.ts";
import { filesOf } from "./files-of.ts";
import { hideRestricted, type VisibilityOptions } from "./hide-restricted.ts";
import { linkFiles } from "./link-files.ts";
import type { DescribedServices } from "./read-descriptor-set.ts";
import { distinctFiles } from "./validate-files.ts";

/** The visible part of files, with its own descriptors. */
export interface VisibleTypes extends Pick<DescribedServices, "types" | "restricted" | "labels"> {
  /** The names of all files, including files in which nothing is visible. */
  readonly fileNames: ReadonlySet<string>;
}

/**
 * Returns the visible part of descriptors, such as those in generated code, and of all files that they import.
 *
 * @param described - services or types
 * @throws Error if an enum hides its first value, or two files with the same name differ
 */
export function hideInFiles(
  described: Iterable<{ readonly file: DescFile }>,
  visibility: VisibilityOptions,
): VisibleTypes {
  const protos = distinctFiles([...filesOf(described)].map(({ proto }) => proto));
  const { visible, restricted, labels } = runSteps(hideRestricted(protos, visibility));
  const { set } = runSteps(completeFiles(visible));
  const types = runSteps(linkFiles(set.file, () => true));
  return { types, restricted, labels, fileNames: new Set(protos.map(({ name }) => name)) };
}

/**
 * Returns services without the parts that a gateway with the option `visibility` hides, for `createOpenApi` and
 * `createReflectionService`. Hidden services are left out.
 *
 * @throws Error if an enum hides its first value, which is its fields' default
 */
export function visibleServices(
  services: readonly DescService[],
  visibility: VisibilityOptions,
): readonly DescService[] {
  const { types } = hideInFiles(services, visibility);
  return services.flatMap(({ typeName }) => types.getService(typeName) ?? []);
}
