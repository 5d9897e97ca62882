/**
 * Would the gateway start with this definition? `npx @protoport/proxy check set.binpb`.
 *
 * Flow: the file → services (read-services) → the problems that `createGateway` throws (check-services) → a report.
 * Nothing is served, and no socket is opened.
 */
export { checkCommand } from "./check-command.ts";
export { InputError } from "./input-error.ts";
export { definitionMaxBytes, readDefinition } from "./read-definition.ts";
export { describeGot, findUnknownSelectors } from "./known-selectors.ts";
export { readInput } from "./read-input.ts";
export { readRules } from "./read-rules.ts";
export { type ReadServices, readServices, servicesOf } from "./read-services.ts";
export {
  profileNames,
  parseSwitches,
  splitSwitches,
  type SwitchName,
  switchNames,
  toRestOptions,
} from "./rest-switches.ts";
export { describeUnusedLabels } from "@protoport/gateway/descriptors";
export { createDescriber, describeUnusedRules, findUnknownNames } from "./unused-names.ts";
export { labelsOf, visibilityFlag } from "./visibility-flag.ts";
