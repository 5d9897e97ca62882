/**
 * What does a definition offer, would a gateway start with it, and which changes break its clients? Nothing is served,
 * and no socket is opened.
 *
 * Flow: a file → a {@link Definition} (definition) → the problems that `createGateway` throws (check-definition), the
 * changes since an older version (compare-definitions, compare), or an OpenAPI document (write-open-api, openapi). The
 * commands `check`, `openapi` and `protoc-gen-openapi` print the results.
 */
export { checkCommand } from "./check-command.ts";
export { maxDefinitionBytes } from "./definition.ts";
export { InputError, readInput, readRules } from "./read-input.ts";
export {
  createDescriber,
  describeUnusedRules,
  findUnknownNames,
  findUnknownSelectors,
  findUnknownServices,
  namesIn,
  selectableNames,
} from "./known-selectors.ts";
export { openApiCommand, pluginCommand } from "./openapi/openapi-commands.ts";
export {
  operationIdsType,
  profileNames,
  splitSwitches,
  type SwitchName,
  switchNames,
  toRestOptions,
} from "./definition-flags.ts";
export { createRequiredScopes, findUncheckedScopes, type UncheckedRpcs } from "./unchecked-scopes.ts";
