/**
 * What does a definition offer, would a gateway start with it, and which changes break its clients? Nothing is served,
 * and no socket is opened.
 *
 * Flow: a file → a {@link Definition} (definition) → the problems that `createGateway` throws (check-definition), the
 * changes since an older version (compare-definitions, compare), or an OpenAPI document (write-open-api, openapi). The
 * commands `check`, `openapi` and `protoc-gen-openapi` print the results.
 */
export { checkCommand } from "./check-command.ts";
export { definitionMaxBytes } from "./definition.ts";
export { InputError } from "./input-error.ts";
export { findUnknownSelectors, findUnknownServices, namesIn } from "./known-selectors.ts";
export { openApiCommand } from "./openapi/openapi-command.ts";
export { operationIdsType } from "./operation-ids-flag.ts";
export { pluginCommand } from "./openapi/plugin-command.ts";
export { readInput } from "./read-input.ts";
export { readRules } from "./read-rules.ts";
export { profileNames, splitSwitches, type SwitchName, switchNames, toRestOptions } from "./rest-switches.ts";
export { createRequiredScopes, findUncheckedScopes, type UncheckedRpcs } from "./unchecked-scopes.ts";
export { createDescriber, describeUnusedRules, findUnknownNames, selectableNames } from "./unused-names.ts";
