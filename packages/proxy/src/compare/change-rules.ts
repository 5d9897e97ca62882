/** `error` if a request that worked fails or gets another response; `warning` if that depends on the client. */
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

/** The kinds of changes, each with its severity. */
export const changeRules: Readonly<Record<ChangeRule, { readonly severity: Severity; readonly about: string }>> = {
  "service-removed": { severity: "error", about: "A service is removed." },
  "method-removed": { severity: "error", about: "An RPC is removed." },
  "method-stream-changed": { severity: "error", about: "An RPC streams its request or response, or no longer does." },
  "method-type-changed": { severity: "error", about: "An RPC has another type with a special form in JSON." },
  "method-get-removed": { severity: "error", about: "An RPC is no longer free of side effects: Connect's GET fails." },
  "route-removed": { severity: "error", about: "A method and path that REST clients call is removed or moved." },
  "route-taken": { severity: "error", about: "A method and path now belongs to another RPC." },
  "route-shadowed": { severity: "warning", about: "Some paths of a route now belong to a more specific route." },
  "path-variable-changed": { severity: "error", about: "A part of the path sets another field, or none." },
  "field-moved": { severity: "error", about: "A field moves from the query or the body to the path." },
  "body-changed": { severity: "error", about: "The body of requests is another field." },
  "response-body-changed": { severity: "error", about: "The body of responses is another field." },
  "response-status-changed": { severity: "error", about: "The status of successful responses changes." },
  "field-removed": { severity: "error", about: "A field is removed." },
  "field-number-changed": { severity: "error", about: "A field has another number: binary messages change." },
  "field-json-name-changed": { severity: "error", about: "A field has another name in JSON." },
  "field-name-changed": { severity: "warning", about: "A field has another name; its name in JSON is the same." },
  "field-type-changed": { severity: "error", about: "A field has another type." },
  "field-cardinality-changed": { severity: "error", about: "A field becomes repeated, a map or singular." },
  "field-presence-changed": { severity: "warning", about: "A field loses presence: a default value is not sent." },
  "field-oneof-changed": { severity: "warning", about: "A field moves into a oneof or out of it." },
  "field-default-changed": { severity: "warning", about: "A field has another default value (proto2)." },
  "field-required": { severity: "error", about: "Requests must set a field, by `required` or by a rule." },
  "field-optional": { severity: "warning", about: "A field of responses is no longer `required` (proto2)." },
  "rules-narrowed": { severity: "error", about: "`buf.validate` rules refuse more requests." },
  "enum-value-removed": { severity: "error", about: "An enum value is removed." },
  "enum-value-renamed": { severity: "error", about: "An enum value has another name: JSON changes." },
  "enum-value-renumbered": { severity: "error", about: "An enum value has another number: binary messages change." },
  "enum-closed": { severity: "error", about: "An enum becomes closed: requests with unknown numbers are refused." },
  "json-format-changed": { severity: "warning", about: "A type no longer guarantees a form in JSON (editions)." },
  "visibility-narrowed": {
    severity: "error",
    about: "Callers with a label, or all of them, no longer see an element.",
  },
};
