import type { ComparisonCase } from "../case.ts";

const reports: readonly string[] = [];
const item = "message Item { string id = 1; }";

/** Changes that no client notices. */
export const compatibleCases: readonly ComparisonCase[] = [
  {
    name: "fields are added to a request and a response",
    reports,
    old: {},
    now: { req: "string id = 1; string name = 2;", res: "string id = 1; repeated Req items = 2;" },
    body: { id: "a" },
    response: { id: "b" },
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
    name: "one segment becomes any number of segments",
    reports,
    old: { http: 'get: "/files/{id}"' },
    now: { http: 'get: "/files/{id=**}"' },
    request: "GET /files/a",
  },
  {
    name: "a route of one method gets all",
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
    name: "a literal is added next to a number",
    reports,
    old: { http: 'get: "/items/{id}"', req: "int64 id = 1;" },
    now: { methods: 'rpc Ask(Req) returns (Res) { option (google.api.http) = { get: "/items/search" }; }' },
    request: "GET /items/5",
  },
  {
    name: "the field of a path variable and of a body is renamed, and keeps its JSON name",
    reports,
    old: { http: 'post: "/call" body: "item"', req: "Item item = 1;", types: item },
    now: { http: 'post: "/call" body: "thing"', req: 'Item thing = 1 [json_name = "item"];' },
    body: { id: "a" },
  },
  {
    name: "the types of an RPC are renamed",
    reports,
    old: { types: "message Request { string id = 1; } message Response { string id = 1; }" },
    now: { rpc: "rpc Call(Request) returns (Response)" },
    body: { id: "a" },
    response: { id: "b" },
  },
  {
    name: "a nested type moves to the file",
    reports,
    old: { req: "message Item { string id = 1; } Item item = 1;" },
    now: { req: "Item item = 1;", types: item },
    body: { item: { id: "a" } },
  },
  {
    name: "an enum is renamed",
    reports,
    old: { req: "Color color = 1;", types: "enum Color { NONE = 0; RED = 1; }" },
    now: { req: "Paint color = 1;", types: "enum Paint { NONE = 0; RED = 1; }" },
    body: { color: "RED" },
  },
  {
    name: "an enum gets a value, and another name for one",
    reports,
    old: { req: "Color color = 1;", res: "Color color = 1;", types: "enum Color { NONE = 0; RED = 1; }" },
    now: { types: "enum Color { option allow_alias = true; NONE = 0; RED = 1; CRIMSON = 1; BLUE = 2; }" },
    body: { color: "RED" },
    response: { color: "RED" },
  },
  {
    name: "another name of an enum value becomes the first, in requests",
    reports,
    old: { req: "Color color = 1;", types: "enum Color { NONE = 0; RED = 1; }" },
    now: { types: "enum Color { option allow_alias = true; NONE = 0; CRIMSON = 1; RED = 1; }" },
    body: { color: "RED" },
  },
  {
    name: "a field gets presence",
    reports,
    old: {},
    now: { req: "optional string id = 1;", res: "optional string id = 1;" },
    body: { id: "a" },
    response: { id: "b" },
  },
  {
    name: "a field joins a new oneof whose other fields are new",
    reports,
    old: {},
    now: { req: "oneof choice { string id = 1; string name = 2; }" },
    body: { id: "a" },
  },
  {
    name: "a json_name is the default one",
    reports,
    old: { req: "string item_id = 1;" },
    now: { req: 'string item_id = 1 [json_name = "itemId"];' },
    body: { itemId: "a" },
  },
  {
    name: "fields change their order, and become deprecated",
    reports,
    old: { req: "string a = 1; string b = 2;", res: "string a = 1; string b = 2;" },
    now: { req: "string b = 2; string a = 1 [deprecated = true];", res: "string b = 2; string a = 1;" },
    body: { a: "x", b: "y" },
    response: { a: "x", b: "y" },
  },
  {
    name: "proto3 becomes an edition with implicit presence",
    reports,
    old: { req: "string id = 1; Color color = 2;", types: "enum Color { NONE = 0; RED = 1; }" },
    now: {
      syntax: 'edition = "2023";',
      types: "option features.field_presence = IMPLICIT; enum Color { NONE = 0; RED = 1; }",
    },
    body: { id: "a", color: 9 },
    response: { id: "b" },
  },
  {
    name: "an RPC has no side effects",
    reports,
    old: {},
    now: { options: "option idempotency_level = NO_SIDE_EFFECTS;" },
    request: "Call json",
    body: { id: "a" },
  },
  {
    name: "a request that was empty gets fields",
    reports,
    old: { rpc: "rpc Call(google.protobuf.Empty) returns (Res)" },
    now: { rpc: "rpc Call(Req) returns (Res)" },
    body: {},
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
];
