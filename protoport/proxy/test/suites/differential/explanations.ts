import type { CaseRequest } from "../../../../conformance/runner/index.ts";
import type { ResponseView } from "./response-view.ts";
import type { Peer } from "./servers.ts";

/** A known difference between the proxy and a peer, which protoport/docs/how-to/migration.md or a standard explains. */
export type Explanation = { peer: Peer; why: string; covers: (difference: Difference) => boolean };

export type Difference = { readonly request: CaseRequest; readonly proxy: ResponseView; readonly peer: ResponseView };

/** Returns a request's path, its query, and the complete request as text. */
function partsOf({ target, json = "" }: CaseRequest): { path: string; query: string; all: string } {
  const [path = "", query = ""] = target.split("?", 2);
  return { path, query, all: `${target} ${json}` };
}

const isStatus = ({ proxy, peer }: Difference, ofProxy: number, ofPeer: number): boolean =>
  proxy.status === ofProxy && peer.status === ofPeer;
const unknownEnum = /color_red|COLOR_BLUE/;

/** Returns whether a query parameter names a field that the rule's path or body sets. */
function repeatsField({ target, method }: CaseRequest): boolean {
  const { path, query } = partsOf({ target, method });
  if (query === "") return false;
  const hasWholeBody = /^\/v1\/(?:everything(?:\/[^/]+)?|return|nested\/[^/]+\/everything)$/.test(path);
  const names = query.split("&").map((part) => fieldName(part.split("=", 1)[0] ?? ""));
  const [, kind] = /^\/v1\/scalars\/(\w+)\//.exec(path) ?? [];
  return (
    (hasWholeBody && method !== "DELETE") ||
    (method === "PATCH" && names.some((name) => name.startsWith("nested."))) ||
    (kind !== undefined && names.includes(`f${kind}`)) ||
    (path !== "/v1/query" && names.some((name) => pathFields.includes(name)))
  );
}

/** The fields that other routes' paths set. */
const pathFields: readonly string[] = ["fstring", "fint64", "fbool", "nested.text", "nested.inner.text"];

function setsFieldTwice(request: CaseRequest): boolean {
  const names = partsOf(request)
    .query.split("&")
    .map((part) => fieldName(part.split("=", 1)[0] ?? ""));
  return new Set(names).size < names.length;
}

const fieldName = (name: string): string => name.replaceAll("_", "").replace("renamed", "ownName").toLowerCase();

/** All known differences. The first that matches applies. */
// oxfmt-ignore
export const explanations: readonly Explanation[] = [
  { peer: "envoy", why: "Envoy's own errors are text, the proxy's are google.rpc.Status",
    covers: ({ proxy, peer }) => proxy.status === peer.status && peer.status >= 400 && peer.type === "text/plain" },
  { peer: "envoy", why: "404 for another method of a known path; the proxy sends 405 with Allow (RFC 9110 §15.5.6)",
    covers: (difference) => isStatus(difference, 405, 404) },
  { peer: "envoy", why: "a plus sign in a query stays one; the proxy reads a space, as HTML forms write it",
    covers: ({ request, proxy,
      peer }) => request.target.includes("fString=a+b") && proxy.body === peer.body.replace('"a+b"', '"a b"') },
  { peer: "envoy", why: "an error in the middle of a stream is lost; the proxy adds it to the array",
    covers: ({ request, proxy,
      peer }) => request.target.includes("failWith=5") && proxy.body.includes('{"@error":{"code":5') && peer.status === 200 },
  { peer: "envoy",
    why: "a name that is not a value of the enum is refused in a body; the proxy's `lenient` leaves the field out",
    covers: (difference) => isStatus(difference, 200, 400) && unknownEnum.test(partsOf(difference.request).all) },
  { peer: "envoy",
    why: "parameters that name fields of the path or the body are used or refused; `lenient` ignores them (http.proto)",
    covers: ({ request, proxy,
      peer }) => repeatsField(request) && proxy.status === 200 && (peer.status === 200 || peer.status === 400) },
  { peer: "envoy",
    why: "a field of the path in the body overrides the path; the proxy's `lenient` ignores that of the body",
    covers: ({ request, proxy, peer }) => isStatus({ request, proxy, peer }, 200,
      200) && request.target.startsWith("/v1/nested/") && /"text":/.test(request.json ?? "") },
  { peer: "envoy", why: "the number of an enum value is accepted in quotes in JSON; `lenient` leaves the field out",
    covers: (difference) => isStatus(difference, 200, 200) && /"fEnum":"-?1"/.test(difference.request.json ?? "") },
  { peer: "envoy",
    why: "a field of the path is refused in the body, if both set the same oneof; `lenient` ignores that of the path",
    covers: (difference) => isStatus(difference, 200, 400) && difference.request.json?.includes("choice") === true },
  { peer: "envoy", why: "yes is true; the proxy accepts true and false (ProtoJSON)",
    covers: (difference) => isStatus(difference, 400,
      200) && /bool[=/": ]+yes/i.test(partsOf(difference.request).all) },
  { peer: "envoy", why: "of a parameter that repeats a field without `repeated`, the last counts; the proxy refuses it",
    covers: (difference) => isStatus(difference, 400, 200) && setsFieldTwice(difference.request) },
  { peer: "envoy", why: "a body that is not valid JSON is accepted: a comma after the last member",
    covers: (difference) => isStatus(difference, 400, 200) && difference.request.json?.includes(",}") === true },
  { peer: "envoy", why: "one value is a list of one; the proxy accepts only a list",
    covers: (difference) => isStatus(difference, 400, 200) && difference.request.target === "/v1/fields/strings" },
  { peer: "envoy", why: "a slash at the end of a path is ignored; the proxy responds with 404",
    covers: ({ request, proxy,
      peer }) => proxy.status === 404 && (peer.status === 200 || peer.status === 400) && partsOf(request).path.endsWith("/") },
  { peer: "envoy", why: "a body that is a number fails with INTERNAL",
    covers: (difference) => isStatus(difference, 200,
      500) && difference.request.target.startsWith("/v1/fields/") && /^-?\d+$/.test(difference.request.json ?? "") },
  { peer: "grpc-gateway",
    why: "501 for another method of a known path; the proxy sends 405 with Allow (RFC 9110 §15.5.6)",
    covers: (difference) => isStatus(difference, 405, 501) },
  { peer: "grpc-gateway", why: "unset messages are written as null; the proxy leaves them out",
    covers: ({ request, proxy,
      peer }) => request.target.startsWith("/v1/return") && proxy.status === 200 && peer.body.includes(":null") },
  { peer: "grpc-gateway",
    why: "a PATCH gets an update mask; this build of grpc-gateway has `allow_patch_feature=false`",
    covers: ({ request, proxy, peer }) => request.method === "PATCH" && proxy.body.replace(/"mask":"[^"]*",?/,
      "") === peer.body },
  { peer: "grpc-gateway", why: "an unknown field of a message in a query sets the empty message",
    covers: ({ request, proxy,
      peer }) => request.target.includes("nested.unknown=1") && proxy.body === peer.body.replace(/"nested":\{\},?/,
      "").replace(",}", "}") },
  { peer: "grpc-gateway",
    why: "of a field that a query sets under both of its names, the last counts; the proxy refuses it",
    covers: (difference) => isStatus(difference, 400, 200) && setsFieldTwice(difference.request) },
  ...(["envoy", "grpc-gateway"] as const).map((peer): Explanation => ({
    peer,
    why: "an invalid value of a field of the path is refused in the body; `lenient` ignores the field",
    covers: (difference) =>
      isStatus(difference, 200, 400) &&
      difference.request.method === "PUT" &&
      /"(?:fInt64|nested)":/.test(difference.request.json ?? ""),
  })),
  { peer: "grpc-gateway", why: "a mask of several paths in a query fails with UNKNOWN",
    covers: ({ request, peer }) => peer.status === 500 && request.target.includes("mask=nested.text,fString") },
  { peer: "grpc-gateway",
    why: "bytes in a URL need padding and the alphabet of base64; the proxy accepts both alphabets (ProtoJSON)",
    covers: (difference) => isStatus(difference, 200,
      400) && /bytes[=/](?:_-8|AQ)\b/i.test(difference.request.target) },
  { peer: "grpc-gateway",
    why: "%2F divides segments, by the default mode of unescaping; the proxy keeps it in its segment",
    covers: ({ request, peer }) => peer.status === 404 && /%2F/i.test(partsOf(request).path) },
  { peer: "grpc-gateway",
    why: "a name that is not a value of the enum is refused as a body; `lenient` leaves the field out",
    covers: (difference) => isStatus(difference, 200, 400) && unknownEnum.test(partsOf(difference.request).all) },
  { peer: "grpc-gateway",
    why: "a body that is one field is read as Go reads JSON: no 64-bit integer as a string, no name of an enum",
    covers: (difference) => isStatus(difference, 200,
      400) && /^\/v1\/fields\/(?:int64|enum)$/.test(difference.request.target) },
  { peer: "grpc-gateway", why: "a variable matches an empty segment; the proxy requires a character (http.proto)",
    covers: ({ request, proxy,
      peer }) => proxy.status === 404 && (peer.status === 200 || peer.status === 400) && partsOf(request).path.endsWith("/") },
  { peer: "grpc-gateway",
    why: "errors in streams have no name of the code, and an error before the first message is in `error`, too",
    covers: ({ request, proxy,
      peer }) => request.target.includes("failWith=5") && (proxy.body.replace(',"status":"NOT_FOUND"',
      "") === peer.body || (proxy.status === 404 && peer.status === 404)) },
  { peer: "grpc-gateway", why: "a stream without messages has no content type",
    covers: ({ request, proxy,
      peer }) => request.target === "/v1/streams/count/0" && proxy.body === peer.body && peer.type === "" },
];
