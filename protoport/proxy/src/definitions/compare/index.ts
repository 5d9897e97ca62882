/**
 * Which changes to a definition break its clients, in addition to those that `buf breaking` reports?
 *
 * Flow: two service versions → routes by example requests (compare-routes), visibility of
 * messages and their fields (compare-messages), rules (validate-rules) → changes (change) → accepted and open changes
 * (accepted-changes) → a report (write-changes). The module opens no sockets.
 */
export { partitionAccepted, type PartitionedChanges, writeAnnotations, writeChanges } from "./write-changes.ts";
export { type Change, type ChangeRule, severities, type Severity } from "./change.ts";
export { compareServices } from "./compare-services.ts";
export { loadRules, withoutRules } from "./validate-rules.ts";
