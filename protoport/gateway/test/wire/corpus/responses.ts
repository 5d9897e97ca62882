import type { JsonValue } from "@bufbuild/protobuf";
import { type Case, http, methodUnknown } from "./case.ts";

function response(rule: string, request: string, body: JsonValue): Case {
  return { rule, request: `GET /v1/response/${request}`, want: { httpStatus: 200, json: body } };
}

/** What responses look like. */
// oxfmt-ignore
export const responseCases: readonly Case[] = [
  response(`${http}: response_body is null for an unset message`, "nested", null),
  response(`${http}: response_body is "" for empty bytes`, "bytes", ""),
  response(`${http}: response_body is null for an unset wrapper`, "wrapper", null),
  { rule: "RFC 9110 §9.3.2: HEAD is GET without the body", request: "HEAD /v1/query?fString=a",
    want: { httpStatus: 200, json: undefined, header: { "content-type": "application/json" } } },
  { rule: "RFC 9110 §9.3.2: an error for HEAD has no body", request: "HEAD /v1/int64/x",
    want: { httpStatus: 400, json: undefined } },
  { rule: "RFC 9110 §9.3.2: a 404 for HEAD has no body", request: "HEAD /v2",
    want: { httpStatus: 404, json: undefined } },
  { rule: `${http}: a rule may have the method HEAD`, request: "HEAD /v1/custom/a",
    want: { httpStatus: 200, json: undefined } },
  { rule: "RFC 9110 §15.5.6: HEAD on a path without GET gets 405", request: "HEAD /v1/sinks",
    want: { httpStatus: 405, json: undefined, header: { allow: "POST" } } },
  { rule: "AIP-193: an error has code, status, message and details", request: "GET /v1/fail/5?fString=a",
    want: { httpStatus: 404, json: { code: 5, status: "NOT_FOUND", message: "as asked", details: [] } } },
  { rule: "an error before the RPC has the record of RPC errors", request: "GET /v1/query?xyz=1",
    want: { httpStatus: 400, json: { code: 3, status: "INVALID_ARGUMENT",
        message: 'unknown query parameter "xyz"; to accept it, set the server option lenient or ignoredQueryParameters',
        details: [] } } },
  { rule: "an unknown method gets 501", request: "CONSTRUCTOR /v1/query", only: "HTTP/2", want: methodUnknown },
];
