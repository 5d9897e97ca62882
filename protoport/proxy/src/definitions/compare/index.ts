/**
 * Which changes to a definition break its clients, in addition to those that `buf breaking` reports?
 *
 * Flow: two service versions → routes by example requests (compare-routes), visibility of
 * messages and their fields (compare-messages), rules (validate-rules) → changes (change) → accepted and open changes
 * (accepted-changes) → a report (write-changes). The module opens no sockets.
 */
export { partitionAccepted, type PartitionedChanges } from "./accepted-changes.ts";
export type { Change } from "./change.ts";
export { type ChangeRule, severities, type Severity } from "./change-rules.ts";
export { compareServices } from "./compare-services.ts";
export { loadRules, withoutRules } from "./validate-rules.ts";
export { writeAnnotations, writeChanges } from "./write-changes.ts";
