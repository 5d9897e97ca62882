/**
 * Reads the services and types in a binary google.protobuf.FileDescriptorSet.
 *
 * Flow: parse → find the files that services need (needed-files) → check names and numbers (validate-files) → remove
 * hidden elements (hide-restricted) → complete missing files and types, sorted as registries require (complete-files) →
 * the registry (read-descriptor-set). Everything is checked, because descriptors may come from an untrusted server. If a
 * program passes descriptors to the gateway, only the services and the types that they use are checked.
 */
export { type DeclaredNames, declaredNames } from "./parse-files.ts";
export {
  filesOf,
  hideInFiles,
  markIncomplete,
  refuseIncomplete,
  visibleServices,
  type VisibleTypes,
} from "./visible-services.ts";
export { describeUnusedLabels, HiddenParts, type PartlyVisible } from "./hidden-parts.ts";
export { visibilityLabelsOf, type VisibilityOptions, visibilityOptionNames } from "./hide-restricted.ts";
export { knownFile, sortFiles } from "./complete-files.ts";
export {
  type DescribedServices,
  InvalidDescriptorSetError,
  readDescriptorSet,
  readDescriptorSetInTurns,
} from "./read-descriptor-set.ts";
export { isPlaceholder, joinNames, validateServices } from "./validate-files.ts";
