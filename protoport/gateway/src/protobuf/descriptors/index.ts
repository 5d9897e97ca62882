/**
 * Reads the services and types in a binary google.protobuf.FileDescriptorSet.
 *
 * Flow: parse → find the files that services need (needed-files) → check names and numbers (validate-files) → remove
 * hidden elements (hide-restricted) → complete missing files and types (complete-files), sorted as registries require
 * (sort-files) → the registry (link-files). Everything is checked, because descriptors may come from an untrusted
 * server. If a program passes descriptors to the gateway, only the services and the types that they use are checked
 * (validate-services).
 */
export { type DeclaredNames, declaredNames } from "./declared-names.ts";
export { filesOf } from "./files-of.ts";
export { HiddenParts, type PartlyVisible } from "./hidden-parts.ts";
export { visibilityLabelsOf, type VisibilityOptions, visibilityOptionNames } from "./hide-restricted.ts";
export { markIncomplete, refuseIncomplete } from "./incomplete-files.ts";
export { knownFile } from "./known-files.ts";
export { sortFiles } from "./sort-files.ts";
export {
  type DescribedServices,
  InvalidDescriptorSetError,
  readDescriptorSet,
  readDescriptorSetInTurns,
} from "./read-descriptor-set.ts";
export { hideInFiles, visibleServices, type VisibleTypes } from "./visible-services.ts";
export { describeUnusedLabels } from "./unused-labels.ts";
export { isPlaceholder, joinNames } from "./validate-files.ts";
export { validateServices } from "./validate-services.ts";
