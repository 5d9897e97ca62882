/**
 * Which changes to a definition break its clients?
 *
 * Flow: two service versions → routes by example requests (compare-routes), messages and their fields by check tables
 * (compare-messages, field-checks), rules (validate-rules) → changes (change) → accepted and open changes
 * (accepted-changes) → a report (write-changes). The module opens no sockets.
 */
export { partitionAccepted, type PartitionedChanges } from "./accepted-changes.ts";
export { severities } from "./change-rules.ts";
export { compareServices } from "./compare-services.ts";
export { loadRules, withoutRules } from "./validate-rules.ts";
export { writeAnnotations, writeChanges } from "./write-changes.ts";
