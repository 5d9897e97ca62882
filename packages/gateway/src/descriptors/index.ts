/**
 * Which definition are these bytes? A binary google.protobuf.FileDescriptorSet → its services and types.
 *
 * Flow: parse → names and numbers (validate-files) → files and types that are missing (fill-holes), in the order that
 * registries want (sort-files) → the registry. Descriptors may come from a stranger, so nothing here trusts them. Those
 * of a program are checked by what its services reach (validate-services).
 */
export { knownFile } from "./known-files.ts";
export { sortFiles } from "./sort-files.ts";
export { type DescribedServices, NotADescriptorSet, readDescriptorSet } from "./read-descriptor-set.ts";
export { validateServices } from "./validate-services.ts";
