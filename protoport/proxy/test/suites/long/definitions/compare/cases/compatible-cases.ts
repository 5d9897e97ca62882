import type { ComparisonCase } from "../case.ts";

const reports: readonly string[] = [];
const item = "message Item { string id = 1; }";

/** Changes that no client notices. */
export const compatibleCases: readonly ComparisonCase[] = [
  {
    name: "an RPC and its request are renamed, and keep their route and form",
    reports,
    old: { types: "message RenamedReq { string id = 1; }" },
    now: { rpc: "rpc Renamed(RenamedReq) returns (Res)" },
    body: { id: "a" },
  },
  {
    name: "an RPC is added",
    reports,
    old: {},
    now: { methods: 'rpc Ask(Req) returns (Res) { option (google.api.http) = { get: "/ask" }; }' },
    body: { id: "a" },
  },
  {
    name: "a binding is added",
    reports,
    old: {},
    now: { http: 'post: "/call" body: "*" additional_bindings { get: "/call/{id}" }' },
    body: { id: "a" },
  },
  {
    name: "a variable gets an explicit pattern",
    reports,
    old: { http: 'get: "/call/{id}"' },
    now: { http: 'get: "/call/{id=*}"' },
    request: "GET /call/a",
  },
  {
    name: "a variable matches more paths",
    reports,
    old: { http: 'get: "/{id=shelves/*}"' },
    now: { http: 'get: "/{id=*/*}"' },
    request: "GET /shelves/a",
  },
  {
    name: "a variable for one segment is extended to any number of segments",
    reports,
    old: { http: 'get: "/files/{id}"' },
    now: { http: 'get: "/files/{id=**}"' },
    request: "GET /files/a",
  },
  {
    name: "a route for one HTTP method is extended to all methods",
    reports,
    old: { http: 'get: "/call"' },
    now: { http: 'custom { kind: "*" path: "/call" }' },
    request: "GET /call?id=a",
  },
  {
    name: "routes overlap in both versions",
    reports,
    old: {
      http: 'get: "/files/{id=**}"',
      methods: 'rpc Ask(Req) returns (Res) { option (google.api.http) = { get: "/files/{id}" }; }',
    },
    now: { req: "string id = 1; string name = 2;" },
    request: "GET /files/a/b",
  },
  {
    name: "another RPC gets a literal where a path variable is a number",
    reports,
    old: { http: 'get: "/items/{id}"', req: "int64 id = 1;" },
    now: { methods: 'rpc Ask(Req) returns (Res) { option (google.api.http) = { get: "/items/search" }; }' },
    request: "GET /items/5",
  },
  {
    name: "the field used as the body is renamed, and keeps its JSON name",
    reports,
    old: { http: 'post: "/call" body: "item"', req: "Item item = 1;", types: item },
    now: { http: 'post: "/call" body: "thing"', req: 'Item thing = 1 [json_name = "item"];' },
    body: { id: "a" },
  },
  {
    name: "an RPC is no longer internal",
    reports,
    old: { options: 'option (google.api.method_visibility).restriction = "PREVIEW";' },
    now: { options: "" },
    body: { id: "a" },
  },
  {
    name: "a field gets another label",
    reports,
    old: { req: 'string id = 1 [(google.api.field_visibility).restriction = "PREVIEW"];' },
    now: { req: 'string id = 1 [(google.api.field_visibility).restriction = "PREVIEW, INTERNAL"];' },
    body: { id: "a" },
  },
  {
    name: "the limits of rules become wider",
    reports,
    old: {
      req: `string id = 1 [(buf.validate.field).string = { min_len: 2 max_len: 4 in: ["ab"] }];
        int64 size = 2 [(buf.validate.field).int64 = { gt: 3 lt: 9 }];`,
    },
    now: {
      req: `string id = 1 [(buf.validate.field).string = { min_len: 1 max_len: 5 in: ["ab", "cd"] }];
        int64 size = 2 [(buf.validate.field).int64 = { gte: 3 lte: 9 }];`,
    },
    body: { id: "ab", size: 5 },
  },
  {
    name: "rules are removed",
    reports,
    old: { req: 'string id = 1 [(buf.validate.field).required = true, (buf.validate.field).string.pattern = "a"];' },
    now: { req: "string id = 1 [(buf.validate.field).required = false];" },
    body: { id: "a" },
  },
  {
    name: "the message of an expression changes",
    reports,
    old: {
      req: `string id = 1 [(buf.validate.field).cel = { id: "short" message: "long" expression: "size(this) < 2" }];`,
    },
    now: {
      req: `string id = 1 [(buf.validate.field).cel = { id: "size" message: "too long" expression: "size(this) < 2" }];`,
    },
    body: { id: "a" },
  },
  {
    name: "a new field has a rule that only its values have to satisfy",
    reports,
    old: {},
    now: { req: "string id = 1; optional string name = 2 [(buf.validate.field).string.min_len = 3];" },
    body: { id: "a" },
  },
  {
    name: "a response gets rules",
    reports,
    old: {},
    now: {
      res: `option (buf.validate.message).cel = { id: "b" message: "not b" expression: "this.id == 'b'" };
        string id = 1 [(buf.validate.field).required = true];
        string name = 2 [(buf.validate.field).required = true];`,
    },
    body: {},
    response: { id: "a" },
  },
  {
    name: "a literal that the enum does not have is added",
    reports,
    old: { http: 'get: "/items/{color}"', req: "Color color = 1;", types: "enum Color { NONE = 0; RED = 1; }" },
    now: { methods: 'rpc Ask(Req) returns (Res) { option (google.api.http) = { get: "/items/search" }; }' },
    request: "GET /items/RED",
  },
  {
    name: "a required oneof is renamed",
    reports,
    old: { req: "oneof one { option (buf.validate.oneof).required = true; string a = 1; string b = 2; }" },
    now: { req: "oneof other { option (buf.validate.oneof).required = true; string a = 1; string b = 2; }" },
    body: { b: "x" },
  },
  {
    name: "a required field joins a new required oneof",
    reports,
    old: { req: "string id = 1 [(buf.validate.field).required = true];" },
    now: { req: "oneof choice { option (buf.validate.oneof).required = true; string id = 1; string name = 2; }" },
    body: { id: "a" },
  },
  {
    name: "rules are ignored for more values",
    reports,
    old: { req: "string a = 1 [(buf.validate.field).string.min_len = 1]; string b = 2;" },
    now: {
      req: `string a = 1 [(buf.validate.field) = { string: { min_len: 1 } ignore: IGNORE_IF_ZERO_VALUE }];
        string b = 2 [(buf.validate.field) = { string: { min_len: 1 } ignore: IGNORE_ALWAYS }];`,
    },
    body: { a: "x" },
  },
  {
    name: "an expression moves to cel_expression",
    reports,
    old: {
      req: `string id = 1 [(buf.validate.field).cel = { id: "short" message: "long" expression: "size(this) < 2" }];`,
    },
    now: { req: `string id = 1 [(buf.validate.field).cel_expression = "size(this) < 2"];` },
    body: { id: "a" },
  },
  {
    name: "header values are not checked strictly",
    reports,
    old: { req: "string id = 1 [(buf.validate.field).string.well_known_regex = KNOWN_REGEX_HTTP_HEADER_VALUE];" },
    now: {
      req: `string id = 1 [(buf.validate.field).string = { well_known_regex: KNOWN_REGEX_HTTP_HEADER_VALUE strict: false }];`,
    },
    body: { id: "a" },
  },
  {
    name: "a rule about header names that is not strict is removed",
    reports,
    old: {
      req: `string id = 1 [(buf.validate.field).string = { well_known_regex: KNOWN_REGEX_HTTP_HEADER_NAME strict: false }];`,
    },
    now: { req: "string id = 1;" },
    body: { id: "a" },
  },
  {
    name: "inclusive limits become wider exclusive ones",
    reports,
    old: { req: "int32 size = 1 [(buf.validate.field).int32 = { gte: 5 lte: 9 }];" },
    now: { req: "int32 size = 1 [(buf.validate.field).int32 = { gt: 4 lt: 10 }];" },
    body: { size: 5 },
  },
  {
    name: "a range that the limits exclude becomes smaller",
    reports,
    old: { req: "int32 size = 1 [(buf.validate.field).int32 = { gt: 10 lt: 5 }];" },
    now: { req: "int32 size = 1 [(buf.validate.field).int32 = { gt: 9 lte: 5 }];" },
    body: { size: 11 },
  },
];
