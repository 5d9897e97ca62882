/** The sections cited by generated cases. */
export const sentences = {
  path: "google/api/http.proto, HttpRule, Rules for HTTP mapping 1 (path), Special notes; ProtoJSON, Representation of each type",
  query:
    "google/api/http.proto, HttpRule, Rules for HTTP mapping 1 (query), Special notes; ProtoJSON, Representation of each type",
  repeated: "google/api/http.proto, HttpRule, Rules for HTTP mapping 1 (repeated fields in the query)",
  jsonName: "ProtoJSON, Field names as JSON keys; google/api/http.proto names query parameters by field paths alone",
  range: "ProtoJSON, Out of range numeric values; protobuf conformance suite, Required …FieldTooLarge and …TooSmall",
  scalar: "Protocol Buffers Language Guide (proto3), Scalar Value Types: no value of the type has this text",
  enumName: "Protocol Buffers Language Guide (proto3), Enumerations: no value of the type has this text",
  open: "ProtoJSON, Representation of each type; google/api/http.proto leaves the texts of scalars in URLs open",
  number: "ProtoJSON, Representation of each type (numbers)",
  enumeration: "ProtoJSON, Representation of each type (enum)",
  bool: "ProtoJSON, Representation of each type (bool)",
  otherBool:
    "ProtoJSON, Representation of each type (bool); protobuf conformance suite, Recommended BoolFieldIntegerOne and BoolFieldDoubleQuotedTrue",
  names: "ProtoJSON, Field names as JSON keys",
  fractions: "ProtoJSON, Out of range numeric values (fractional portions)",
  wrappers: "ProtoJSON, Well-Known Types (wrapper types)",
  presence: "ProtoJSON, Presence and default-values",
  nulls: "ProtoJSON, Null values",
} as const;
