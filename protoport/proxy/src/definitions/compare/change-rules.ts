/** `error` if a request that worked now fails or changes its response. `warning` if that depends on the client. */
export type Severity = "error" | "warning";

/** The name of a kind of change. */
export type ChangeRule =
  | "route-removed"
  | "route-taken"
  | "route-shadowed"
  | "path-variable-changed"
  | "field-moved"
  | "body-changed"
  | "response-body-changed"
  | "response-status-changed"
  | "field-required"
  | "rules-narrowed"
  | "scopes-changed"
  | "operation-id-changed"
  | "visibility-narrowed"
  | "element-hidden";

/** The kinds of change, each with its severity. */
export const severities: Readonly<Record<ChangeRule, Severity>> = {
  "route-removed": "error",
  "route-taken": "error",
  "route-shadowed": "warning",
  "path-variable-changed": "error",
  "field-moved": "error",
  "body-changed": "error",
  "response-body-changed": "error",
  "response-status-changed": "error",
  "field-required": "error",
  "rules-narrowed": "error",
  "scopes-changed": "error",
  "operation-id-changed": "warning",
  "visibility-narrowed": "error",
  "element-hidden": "error",
};
