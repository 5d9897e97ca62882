/** The entry `@protoport/proxy/definitions`, which reads, checks, compares and describes definitions without a server. */
export { checkDefinition, type CheckOptions, type CheckResult } from "./check-definition.ts";
export type { CheckedTools } from "./check-tools.ts";
export type { Change, ChangeRule, PartitionedChanges, Severity } from "./compare/index.ts";
export { compareDefinitions, type ComparisonOptions } from "./compare-definitions.ts";
export { type Definition, maxDefinitionBytes, parseDefinition, readDefinition, selectServices } from "./definition.ts";
export { InputError } from "./read-input.ts";
export { type DocumentOptions, writeOpenApi } from "./openapi/write-open-api.ts";
