import type { ComparisonCase } from "../case.ts";

/** The changes to HTTP annotations that Google's proto-breaking-change-detector finds. */
// oxfmt-ignore
export const detectorCases: readonly ComparisonCase[] = [
  { name: "HTTP_ANNOTATION_REMOVAL: a rule is removed", reports: ["error route-removed S.Call POST /call"], old: {},
    now: { http: "" }, body: { id: "a" } },
  { name: "HTTP_ANNOTATION_ADDITION: a rule is added", reports: [], old: { http: "" }, now: { http: 'get: "/call"' },
    request: "Call json", body: { id: "a" } },
  { name: "HTTP_ANNOTATION_CHANGE http_method: POST becomes PUT", reports: ["error route-removed S.Call POST /call"],
    old: {}, now: { http: 'put: "/call" body: "*"' }, body: { id: "a" } },
  { name: "HTTP_ANNOTATION_CHANGE http_body: the body becomes a field",
    reports: ["error body-changed S.Call POST /call"],
    old: { req: "Item item = 1;", types: "message Item { string id = 1; }" },
    now: { http: 'post: "/call" body: "item"' }, body: { item: { id: "a" } } },
  { name: "HTTP_ANNOTATION_CHANGE http_uri: a path has another segment",
    reports: ["error route-removed S.Call GET /v1/example:foo"], old: { http: 'get: "/v1/example:foo"' },
    now: { http: 'get: "/v1/example:bar"' }, request: "GET /v1/example:foo" },
  { name: "HTTP_ANNOTATION_CHANGE http_uri: a path has another version",
    reports: ["error route-removed S.Call GET /v1/example:foo"], old: { http: 'get: "/v1/example:foo"' },
    now: { http: 'get: "/v1beta1/example:foo"' }, request: "GET /v1/example:foo" },
];
