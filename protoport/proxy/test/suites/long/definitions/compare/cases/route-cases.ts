import type { ComparisonCase } from "../case.ts";

const visibleTo = (labels: string): string => `option (google.api.method_visibility).restriction = "${labels}";`;

/** Changes to RPCs, routes, bodies and visibility that break REST clients. */
export const routeCases: readonly ComparisonCase[] = [
  {
    name: "an additional binding is removed",
    reports: ["error route-removed S.Call GET /calls/{id}"],
    old: { http: 'get: "/call/{id}" additional_bindings { get: "/calls/{id}" }' },
    now: { http: 'get: "/call/{id}"' },
    request: "GET /calls/a",
  },
  {
    name: "a custom verb is removed",
    reports: ["error route-removed S.Call POST /call/{id}:run"],
    old: { http: 'post: "/call/{id}:run" body: "*"' },
    now: { http: 'post: "/call/{id}/run" body: "*"' },
    request: "POST /call/a:run",
    body: {},
  },
  {
    name: "a variable matches fewer segments",
    reports: ["error route-removed S.Call GET /files/{id=**}"],
    old: { http: 'get: "/files/{id=**}"' },
    now: { http: 'get: "/files/{id=*}"' },
    request: "GET /files/a/b",
  },
  {
    name: "a wildcard in a variable becomes a literal",
    reports: ["error route-removed S.Call GET /{id=*/*}"],
    old: { http: 'get: "/{id=*/*}"' },
    now: { http: 'get: "/{id=shelves/*}"' },
    request: "GET /rooms/a",
  },
  {
    name: "a route for all HTTP methods is restricted to one method",
    reports: ["error route-removed S.Call * /call"],
    old: { http: 'custom { kind: "*" path: "/call" }' },
    now: { http: 'post: "/call"' },
    request: "GET /call?id=a",
  },
  {
    name: "another RPC gets one HTTP method of a route for all methods",
    reports: ["warning route-shadowed S.Call * /call"],
    old: { http: 'custom { kind: "*" path: "/call" }' },
    now: {
      methods: 'rpc Ask(Empty) returns (Res) { option (google.api.http) = { get: "/call" }; }',
      types: "message Empty {}",
    },
    request: "GET /call?id=a",
  },
  {
    name: "a route moves to another RPC",
    reports: ["error route-taken S.Call GET /call/{id}"],
    old: {
      http: 'get: "/call/{id}"',
      methods: 'rpc Ask(Req) returns (Res) { option (google.api.http) = { get: "/ask" }; }',
    },
    now: {
      http: 'get: "/calls/{id}"',
      methods:
        'rpc Ask(Req) returns (Res) { option (google.api.http) = { get: "/ask" additional_bindings { get: "/call/{name}" } }; }',
      req: "string id = 1; string name = 2;",
    },
    request: "GET /call/a",
  },
  {
    name: "an RPC is renamed, and its request gets a rule",
    reports: ["error rules-narrowed Req.id"],
    old: { types: "message RenamedReq { string id = 1; }" },
    now: {
      rpc: "rpc Renamed(RenamedReq) returns (Res)",
      types: "message RenamedReq { string id = 1 [(buf.validate.field).string.max_len = 1]; }",
    },
    body: { id: "ab" },
  },
  {
    name: "another RPC gets a more specific route",
    reports: ["warning route-shadowed S.Call GET /items/{id}"],
    old: { http: 'get: "/items/{id}"' },
    now: {
      methods: 'rpc Search(Empty) returns (Res) { option (google.api.http) = { get: "/items/search" }; }',
      types: "message Empty {}",
    },
    request: "GET /items/search",
  },
  {
    name: "another RPC gets a route that a multi-segment variable matched",
    reports: ["warning route-shadowed S.Call GET /files/{id=**}"],
    old: { http: 'get: "/files/{id=**}"' },
    now: {
      methods: 'rpc Size(Empty) returns (Res) { option (google.api.http) = { get: "/files/*/size" }; }',
      types: "message Empty {}",
    },
    request: "GET /files/a/size",
  },
  {
    name: "another RPC gets a custom verb that a variable matched",
    reports: ["warning route-shadowed S.Call GET /items/{id}"],
    old: { http: 'get: "/items/{id}"' },
    now: { methods: 'rpc Water(Req) returns (Res) { option (google.api.http) = { get: "/items/{id}:water" }; }' },
    request: "GET /items/a:water",
  },
  {
    name: "a path variable sets another field",
    reports: ["error field-moved S.Call GET /call/{id} name", "error path-variable-changed S.Call GET /call/{id}"],
    old: { http: 'get: "/call/{id}"', req: "string id = 1; string name = 2;" },
    now: { http: 'get: "/call/{name}"' },
    request: "GET /call/a",
  },
  {
    name: "a path variable sets a field of another message",
    reports: [
      "error field-moved S.Call GET /call/{item.id} owner.id",
      "error path-variable-changed S.Call GET /call/{item.id}",
    ],
    old: {
      http: 'get: "/call/{item.id}"',
      req: "Item item = 1; Item owner = 2;",
      types: "message Item { string id = 1; }",
    },
    now: { http: 'get: "/call/{owner.id}"' },
    request: "GET /call/a",
  },
  {
    name: "a path variable becomes a wildcard that sets no field",
    reports: ["error path-variable-changed S.Call GET /call/{id}"],
    old: { http: 'get: "/call/{id}"' },
    now: { http: 'get: "/call/*"' },
    request: "GET /call/a",
  },
  {
    name: "a path variable includes the literal segment before it",
    reports: ["error path-variable-changed S.Call GET /shelves/{id}"],
    old: { http: 'get: "/shelves/{id}"' },
    now: { http: 'get: "/{id=shelves/*}"' },
    request: "GET /shelves/a",
  },
  {
    name: "a field moves from the query to the path",
    reports: ["error field-moved S.Call GET /call/* id"],
    old: { http: 'get: "/call/*"' },
    now: { http: 'get: "/call/{id}"' },
    request: "GET /call/b?id=a",
  },
  {
    name: "a field moves from the body to the path",
    reports: ["error field-moved S.Call POST /call/* id"],
    old: { http: 'post: "/call/*" body: "*"' },
    now: { http: 'post: "/call/{id}" body: "*"' },
    request: "POST /call/b",
    body: { id: "a" },
  },
  {
    name: "the request fields move from the query to the body",
    reports: ["error body-changed S.Call POST /call"],
    old: { http: 'post: "/call"' },
    now: { http: 'post: "/call" body: "*"' },
    request: "POST /call?id=a",
  },
  {
    name: "the request fields move from the body to the query",
    reports: ["error body-changed S.Call POST /call"],
    old: {},
    now: { http: 'post: "/call"' },
    body: { id: "a" },
  },
  {
    name: "another field becomes the request body",
    reports: ["error body-changed S.Call POST /call"],
    old: { http: 'post: "/call" body: "a"', req: "Item a = 1; Item b = 2;", types: "message Item { string id = 1; }" },
    now: { http: 'post: "/call" body: "b"' },
    body: { id: "x" },
  },
  {
    name: "a field becomes the response body",
    reports: ["error response-body-changed S.Call POST /call"],
    old: {},
    now: { http: 'post: "/call" body: "*" response_body: "id"' },
    body: {},
    response: { id: "a" },
  },
  {
    name: "the complete message becomes the response body",
    reports: ["error response-body-changed S.Call GET /call"],
    old: { http: 'get: "/call" response_body: "id"' },
    now: { http: 'get: "/call"' },
    request: "GET /call",
    response: { id: "a" },
  },
  {
    name: "an Empty becomes a message, with emptyResponse 204",
    reports: ["error response-status-changed S.Call POST /call"],
    old: { rpc: "rpc Call(Req) returns (google.protobuf.Empty)" },
    now: { rpc: "rpc Call(Req) returns (Res)" },
    body: {},
    rest: { emptyResponse: 204 },
  },
  {
    name: "an RPC becomes internal",
    reports: ["error visibility-narrowed S.Call"],
    old: {},
    now: { options: visibleTo("INTERNAL") },
    body: {},
  },
  {
    name: "an RPC loses one of its labels",
    reports: ["error visibility-narrowed S.Call"],
    old: { options: visibleTo("INTERNAL,PREVIEW") },
    now: { options: visibleTo("INTERNAL") },
    body: {},
  },
  {
    name: "a service becomes internal",
    reports: ["error visibility-narrowed Other"],
    old: { types: "service Other { rpc Ask(Req) returns (Res); }" },
    now: {
      types:
        'service Other { option (google.api.api_visibility).restriction = "INTERNAL"; rpc Ask(Req) returns (Res); }',
    },
    request: "Other.Ask json",
    body: {},
  },
  {
    name: "a field of requests becomes internal",
    reports: ["error visibility-narrowed Req.id"],
    old: {},
    now: { req: 'string id = 1 [(google.api.field_visibility).restriction = "INTERNAL"];' },
    body: { id: "a" },
  },
  {
    name: "a message becomes internal",
    reports: ["error visibility-narrowed Item"],
    old: { req: "Item item = 1;", types: "message Item { string id = 1; }" },
    now: { types: 'message Item { option (google.api.message_visibility).restriction = "INTERNAL"; string id = 1; }' },
    body: { item: { id: "a" } },
  },
  {
    name: "an enum becomes internal",
    reports: ["error visibility-narrowed Color"],
    old: { res: "Color color = 1;", types: "enum Color { NONE = 0; RED = 1; }" },
    now: { types: 'enum Color { option (google.api.enum_visibility).restriction = "INTERNAL"; NONE = 0; RED = 1; }' },
    body: {},
    response: { color: "RED" },
  },
  {
    name: "an enum value of requests becomes internal",
    reports: ["error visibility-narrowed Color.RED"],
    old: { req: "Color color = 1;", types: "enum Color { NONE = 0; RED = 1; }" },
    now: { types: 'enum Color { NONE = 0; RED = 1 [(google.api.value_visibility).restriction = "INTERNAL"]; }' },
    body: { color: "RED" },
  },
  {
    name: "the outer message of a type becomes internal",
    reports: ["error visibility-narrowed Outer"],
    old: { req: "Outer.Inner item = 1;", types: "message Outer { message Inner { string id = 1; } }" },
    now: {
      types: `message Outer {
        option (google.api.message_visibility).restriction = "INTERNAL";
        message Inner { string id = 1; }
      }`,
    },
    body: { item: { id: "a" } },
  },
  {
    name: "the outer message of an enum becomes internal",
    reports: ["error visibility-narrowed Outer"],
    old: { req: "Outer.Color color = 1;", types: "message Outer { enum Color { NONE = 0; RED = 1; } }" },
    now: {
      types: `message Outer {
        option (google.api.message_visibility).restriction = "INTERNAL";
        enum Color { NONE = 0; RED = 1; }
      }`,
    },
    body: { color: "RED" },
  },
  ...[
    { value: "an enum", field: "Color", literal: "RED" },
    { value: "a bool", field: "bool", literal: "true" },
    { value: "bytes", field: "bytes", literal: "abcd" },
    { value: "a StringValue", field: "google.protobuf.StringValue", literal: "search" },
    { value: "a number", field: "int32", literal: "5" },
  ].map(({ value, field, literal }): ComparisonCase => ({
    name: `another RPC gets a literal that is a value of a path variable, which is ${value}`,
    reports: ["warning route-shadowed S.Call GET /items/{id}"],
    old: { http: 'get: "/items/{id}"', req: `${field} id = 1;`, types: "enum Color { NONE = 0; RED = 1; }" },
    now: { methods: `rpc Ask(Res) returns (Res) { option (google.api.http) = { get: "/items/${literal}" }; }` },
    request: `GET /items/${literal}`,
  })),
];
