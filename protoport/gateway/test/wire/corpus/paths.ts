import type { JsonValue } from "@bufbuild/protobuf";
import { type Case, http, invalid, methodNotAllowed, methodUnknown, notFound } from "./case.ts";

function to(rpc: string, rule: string, request: string, sink: JsonValue = {}): Case {
  return { rule, request, want: { rpc, sink } };
}

const nothing = (rule: string, ...requests: readonly string[]): readonly Case[] =>
  requests.map((request) => ({ rule, request, want: notFound }));

const malformed = (rule: string, message: string, request: string): Case => ({ rule, request, want: invalid(message) });

/** Which RPC a path selects, and its variables' values. See also `test/protocols/rest/rules/route-table.test.ts`. */
// oxfmt-ignore
export const pathCases: readonly Case[] = [
  // Templates.
  ...nothing("only ** matches an empty segment", "GET //v1/wild/a/end", "GET //"),
  to("Segments", "an escape is decoded once", "GET /v1/files/100%2525", { fString: "100%25" }),
  to("Segments", "an escape is decoded once", "GET /v1/files/%252e%252e", { fString: "%2e%2e" }),
  to("Root", `${http}: the root`, "GET /"),
  // Escapes, RFC 3986 §2.1 and §6.2.2.
  to("Segments", "RFC 3986 §6.2.2.2: escapes in template literals are decoded", "GET /v1/escaped/a%2fb/x", { fString: "x",
  }),
  ...nothing(
    "RFC 3986 §2.2: an escaped slash does not separate segments",
    "GET /v1/escaped/a/b/x",
    "GET /v1%2Fwild%2Fa%2Fend",
  ),
  malformed("RFC 3986 §2.1: an invalid escape is refused", "has an invalid percent escape", "GET /v1/string/%zz"),
  malformed("RFC 3629 §3: invalid UTF-8 is refused", "the path is not valid UTF-8", "GET /v1/string/%ff"),
  // Dot segments.
  ...nothing(
    "RFC 3986 §6.2.2.3: dot segments are not removed and match no route",
    "GET /v1/x/../query",
    "GET /v1/files/.%2e/secret",
  ),
  to("Segments", "a segment that starts with dots is an ordinary segment", "GET /v1/files/..a/.b", { fString: "..a/.b",
  }),
  to("Segments", "dots before an escaped slash are not a dot segment", "GET /v1/files/..%2Fsecret", { fString: "..%2Fsecret",
  }),
  // Route precedence.
  to("MatchLiteral", "an escaped literal takes precedence over *", "GET /v1/match/m%65"),
  { rule: "routes depend on the method", request: "DELETE /v1/match/a/b", want: methodNotAllowed("GET, HEAD") },
  // Verbs.
  to("Close", "a verb is the text after the last colon, decoded", "GET /v1/verbs/a:b:%70eek", { fString: "a:b" }),
  // Methods.
  { rule: "RFC 9110 §15.5.6: a 405 has a sorted Allow field", request: "GET /v1/sinks/7",
    want: methodNotAllowed("DELETE, PUT") },
  { rule: "RFC 9110 §9.1: a method is case-sensitive", request: "get /v1/query", only: "HTTP/2", want: methodUnknown },
  { rule: "RFC 9110 §9.3.7: without CORS, OPTIONS is an ordinary method", request: "OPTIONS /v1/query",
    want: methodNotAllowed("GET, HEAD") },
  { rule: `${http}: a rule of kind custom matches only its method`, request: "GET /v1/custom/a",
    want: methodNotAllowed("HEAD, PROPFIND") },
  { rule: "X-HTTP-Method-Override is ignored", request: "POST /v1/sinks/7",
    header: [["x-http-method-override", "DELETE"], ["content-type", "application/x-www-form-urlencoded"]],
    want: methodNotAllowed("DELETE, PUT") },
];
