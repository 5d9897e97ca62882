/** `error` if a request that worked now fails or changes its response. `warning` if that depends on the client. */
export type Severity = "error" | "warning";

/** The name of a kind of change. */
export type ChangeRule =
  | "service-removed"
  | "method-removed"
  | "method-stream-changed"
  | "method-type-changed"
  | "method-get-removed"
  | "route-removed"
  | "route-taken"
  | "route-shadowed"
  | "path-variable-changed"
  | "field-moved"
  | "body-changed"
  | "response-body-changed"
  | "response-status-changed"
  | "field-removed"
  | "field-number-changed"
  | "field-json-name-changed"
  | "field-name-changed"
  | "field-type-changed"
  | "field-cardinality-changed"
  | "field-presence-changed"
  | "field-oneof-changed"
  | "field-default-changed"
  | "field-required"
  | "field-optional"
  | "rules-narrowed"
  | "enum-value-removed"
  | "enum-value-renamed"
  | "enum-value-renumbered"
  | "enum-closed"
  | "json-format-changed"
  | "visibility-narrowed";

/** The kinds of change, each with its severity. */
export const severities: Readonly<Record<ChangeRule, Severity>> = {
  "service-removed": "error",
  "method-removed": "error",
  "method-stream-changed": "error",
  "method-type-changed": "error",
  "method-get-removed": "error",
  "route-removed": "error",
  "route-taken": "error",
  "route-shadowed": "warning",
  "path-variable-changed": "error",
  "field-moved": "error",
  "body-changed": "error",
  "response-body-changed": "error",
  "response-status-changed": "error",
  "field-removed": "error",
  "field-number-changed": "error",
  "field-json-name-changed": "error",
  "field-name-changed": "warning",
  "field-type-changed": "error",
  "field-cardinality-changed": "error",
  "field-presence-changed": "warning",
  "field-oneof-changed": "warning",
  "field-default-changed": "warning",
  "field-required": "error",
  "field-optional": "warning",
  "rules-narrowed": "error",
  "enum-value-removed": "error",
  "enum-value-renamed": "error",
  "enum-value-renumbered": "error",
  "enum-closed": "error",
  "json-format-changed": "warning",
  "visibility-narrowed": "error",
};
