import type { JsonValue } from "@bufbuild/protobuf";
import type { Case } from "./case.ts";
import { http, methodUnknown } from "./case.ts";

function response(rule: string, request: string, body: JsonValue): Case {
  return { rule, request: `GET /v1/response/${request}`, want: { httpStatus: 200, json: body } };
}

/** What responses look like. */
export const responseCases: readonly Case[] = [
  response(`${http}: response_body of a message that is not set`, "nested", null),
  response(`${http}: response_body of no bytes`, "bytes", ""),
  response(`${http}: response_body of a wrapper that is not set`, "wrapper", null),
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
    rule: "RFC 9110 §9.3.2: HEAD of an unknown path has no body either",
    request: "HEAD /v2",
    want: { httpStatus: 404, json: undefined },
  },
  { rule: `${http}: a rule for HEAD itself`, request: "HEAD /v1/custom/a", want: { httpStatus: 200, json: undefined } },
  {
    rule: "RFC 9110 §15.5.6: HEAD on a path without GET",
    request: "HEAD /v1/sinks",
    want: { httpStatus: 405, json: undefined, header: { allow: "POST" } },
  },
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
      json: {
        code: 3,
        status: "INVALID_ARGUMENT",
        message: 'unknown query parameter "xyz"; to accept it, set the server option lenient or ignoredQueryParameters',
        details: [],
      },
    },
  },
  {
    rule: "the name of an RPC is not a path",
    request: "CONSTRUCTOR /v1/query",
    only: "HTTP/2",
    want: methodUnknown,
  },
];
