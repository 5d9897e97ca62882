import type { JsonValue } from "@bufbuild/protobuf";
import type { Row } from "./row.ts";
import { http, json, methodNotAllowed } from "./row.ts";

function response(rule: string, request: string, body: JsonValue): Row {
  return { rule, request: `GET /v1/response/${request}`, want: { httpStatus: 200, json: body } };
}

// google/rpc/code.proto: each code and its HTTP status.
const statuses: readonly (readonly [code: number, httpStatus: number])[] = [
  [1, 499],
  [2, 500],
  [3, 400],
  [4, 504],
  [5, 404],
  [6, 409],
  [7, 403],
  [8, 429],
  [9, 400],
  [10, 409],
  [11, 400],
  [12, 501],
  [13, 500],
  [14, 503],
  [15, 500],
  [16, 401],
];

/** What answers look like. */
export const answerRows: readonly Row[] = [
  response(`${http}: response_body of a message`, "nested?nested.text=a", { text: "a" }),
  response(`${http}: response_body of a message that is not set`, "nested", null),
  response(`${http}: response_body of a list`, "tags?tags=a&tags=b", ["a", "b"]),
  response(`${http}: response_body of an empty map`, "labels", {}),
  response(`${http}: response_body of a string`, "string?fString=a", "a"),
  response(`${json}: int64 is a string`, "int64?fInt64=9007199254740993", "9007199254740993"),
  response(`${http}: response_body of bytes`, "bytes?fBytes=-_8", "+/8="),
  response(`${http}: response_body of no bytes`, "bytes", ""),
  response(`${http}: response_body of an enum`, "enum?fEnum=1", "COLOR_RED"),
  response(`${http}: response_body of a bool`, "bool?fBool=true", true),
  response(`${http}: response_body of a wrapper`, "wrapper?wInt64=0", "0"),
  response(`${http}: response_body of a wrapper that is not set`, "wrapper", null),
  response(`${http}: response_body of a Timestamp`, "time?time=2024-01-01T00:00:00Z", "2024-01-01T00:00:00Z"),
  {
    rule: `${json}: google.protobuf.Empty is an empty object`,
    request: "DELETE /v1/sinks/7",
    want: { httpStatus: 200, json: {}, header: { "content-type": "application/json" } },
  },
  {
    rule: `${json}: fields without a value are left out`,
    request: "GET /v1/int32/0?fString=",
    want: { httpStatus: 200, json: { rpc: "Types", sink: {} }, header: { "content-type": "application/json" } },
  },
  {
    rule: "RFC 9110 §9.3.2: HEAD is GET without the body",
    request: "HEAD /v1/query?fString=a",
    want: { httpStatus: 200, json: undefined, header: { "content-type": "application/json" } },
  },
  {
    rule: "RFC 9110 §9.3.2: HEAD of an error has no body either",
    request: "HEAD /v1/int64/x",
    want: { httpStatus: 400, json: undefined },
  },
  {
    rule: "RFC 9110 §9.3.2: HEAD of nothing has no body either",
    request: "HEAD /v2",
    want: { httpStatus: 404, json: undefined },
  },
  { rule: `${http}: a rule for HEAD itself`, request: "HEAD /v1/custom/a", want: { httpStatus: 200, json: undefined } },
  {
    rule: "RFC 9110 §15.5.6: HEAD where GET is not",
    request: "HEAD /v1/sinks",
    want: { httpStatus: 405, json: undefined, header: { allow: "POST" } },
  },
  ...statuses.map(([code, httpStatus]) => ({
    rule: "google/rpc/code.proto: the HTTP mapping",
    request: `GET /v1/fail/${code}`,
    want: { httpStatus, code, message: "as asked", header: { "content-type": "application/json" } },
  })),
  {
    rule: "AIP-193: code, name, message and details",
    request: "GET /v1/fail/5?fString=a",
    want: { httpStatus: 404, json: { code: 5, status: "NOT_FOUND", message: "as asked", details: [] } },
  },
  {
    rule: "an error before the RPC has the same record",
    request: "GET /v1/query?xyz=1",
    want: {
      httpStatus: 400,
      json: { code: 3, status: "INVALID_ARGUMENT", message: 'unknown query parameter "xyz"', details: [] },
    },
  },
  {
    rule: "the name of a method is no way into a rule",
    request: "CONSTRUCTOR /v1/query",
    only: "HTTP/2",
    want: methodNotAllowed("GET, HEAD"),
  },
];
