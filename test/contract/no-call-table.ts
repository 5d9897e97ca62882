import { encodeEnvelope, type Field, type HttpRequest, type WireFormatName } from "@protoport/testing";
import { deletePlantProcedure } from "../support/plants/delete-plant.ts";
import type { ComparedResponse } from "./expected-response.ts";

/** A request that matches no call, and its complete response in the caller's protocol. */
export interface NoCallTestCase {
  readonly name: string;
  readonly caller: WireFormatName;
  /** Sent with a valid credential in addition to the header. */
  readonly request: HttpRequest;
  /** For HEAD, only the header. */
  readonly want: ComparedResponse;
}

type Fields = Readonly<Record<string, string>>;
const noProcedure = "/plantstore.v1.PlantService/PlantForest";
const message = encodeEnvelope(0, Buffer.from([8, 7]));
const connectVersion: Field = ["connect-protocol-version", "1"];
const typed = (contentType: string, ...more: readonly Field[]): Field[] => [["content-type", contentType], ...more];
const nothingHere = "no route matches this path";
const unsupported = (contentType: string): string => `the content type "${contentType}" is not supported`;
const notAllowed = (httpMethod: string): string => `${httpMethod} is not allowed for this path`;

function json(httpStatus: number, body: object, fields: Fields = {}): ComparedResponse {
  const header = { "content-type": "application/json", ...fields };
  return { httpStatus, header, trailer: {}, messages: [JSON.stringify(body)] };
}

const record = (httpStatus: number, error: number, text: string, fields?: Fields): ComparedResponse =>
  json(httpStatus, { error, message: text }, fields);

const connectError = (httpStatus: number, text: string, fields?: Fields): ComparedResponse =>
  json(httpStatus, { code: httpStatus === 415 ? "invalid_argument" : "unimplemented", message: text }, fields);

/** Returns a response with a gRPC status, which gRPC-Web sends in its trailer. */
function grpcError(contentType: string, status: number, text: string): ComparedResponse {
  const type = { "content-type": contentType };
  const trailer = { "grpc-status": String(status), "grpc-message": text };
  return contentType.startsWith("application/grpc-web")
    ? { httpStatus: 200, header: type, trailer, messages: [] }
    : { httpStatus: 200, header: { ...type, ...trailer }, trailer: {}, messages: [] };
}

const post = (path: string, header: readonly Field[], body: Uint8Array = message): HttpRequest => ({
  httpMethod: "POST",
  path,
  header,
  body,
});

const ask = (httpMethod: string, path: string, ...header: Field[]): HttpRequest => ({ httpMethod, path, header });
type Row = readonly [name: string, caller: WireFormatName, request: HttpRequest, want: ComparedResponse];
const grpcTypes = ["application/grpc", "application/grpc+proto", "application/grpc+json"];
const webTypes = ["application/grpc-web", "application/grpc-web+proto", "application/grpc-web-text"];
const plantMethods = ["GET", "HEAD", "POST", "PUT", "PATCH", "OPTIONS", "TRACE", "PROPFIND", "QUERY"];
const purge = "PURGE is not supported by this server";

// protoport/gateway/test/serve/unmatched-requests.test.ts covers the other methods and content types.
// oxfmt-ignore
const rows: readonly Row[] = [
  ...[...grpcTypes, ...webTypes].map((type): Row => [`an unknown RPC is unimplemented for ${type}`,
    type.endsWith("text") ? "grpc-web-text" : webTypes.includes(type) ? "grpc-web" : "grpc",
    post(noProcedure, typed(type)), grpcError(type, 12, nothingHere)]),
  ...[
    ["an unknown RPC is unimplemented for an unknown gRPC codec", noProcedure, "application/grpc+unheard-of"] as const,
    ["an unknown service is unimplemented", "/forest.v1.ForestService/FellTree", "application/grpc"] as const,
    ["the path of an RPC with a trailing slash is unimplemented", `${deletePlantProcedure}/`, "application/grpc"] as const,
    ["the path of an RPC in lower case is unimplemented", deletePlantProcedure.toLowerCase(), "application/grpc"] as const,
  ].map(([name, path, type]): Row =>
    [name, "grpc", post(path, typed(type)), grpcError("application/grpc", 12, nothingHere)]),
  ["an unknown RPC is unimplemented for Connect", "connect-json",
    post(noProcedure, typed("application/json", connectVersion), Buffer.from("{}")), connectError(404, nothingHere)],
  ["a Connect stream without a version is not treated as REST", "connect-json",
    post(noProcedure, typed("application/connect+json")), connectError(404, nothingHere)],
  ["JSON without a Connect version is treated as REST", "rest",
    post(noProcedure, typed("application/json"), Buffer.from("{}")), record(404, 5, nothingHere)],
  ["an unknown path gets the error record for any body", "rest", post("/forest", typed("text/html"), Buffer.from("<p>")),
    record(404, 5, nothingHere)],
  ...plantMethods.map((method): Row => [`${method} is not allowed on a plant`, "rest", ask(method, "/plants/7"),
    record(405, 12, notAllowed(method), { allow: "DELETE" })]),
  ["X-HTTP-Method-Override is ignored", "rest", ask("POST", "/plants/7", ["x-http-method-override", "DELETE"]),
    record(405, 12, notAllowed("POST"), { allow: "DELETE" })],
  ...["/plants/7", "/forest", deletePlantProcedure].map((path): Row =>
    [`PURGE ${path} is not implemented`, "rest", ask("PURGE", path), record(501, 12, purge)]),
  ["PURGE is not implemented over Connect", "connect-json", ask("PURGE", deletePlantProcedure, connectVersion),
    connectError(501, purge)],
  ["DELETE is not allowed on an RPC", "rest", ask("DELETE", deletePlantProcedure),
    record(405, 12, notAllowed("DELETE"), { allow: "POST" })],
  ["GET is not allowed on an RPC over Connect", "connect-json", ask("GET", deletePlantProcedure, connectVersion),
    connectError(405, notAllowed("GET"), { allow: "POST" })],
  ["text is not a supported content type", "rest", post(deletePlantProcedure, typed("text/plain")),
    record(400, 3, unsupported("text/plain"))],
  ["JSON in another charset than UTF-8 is refused", "rest",
    post(deletePlantProcedure, typed("application/json; charset=utf-16"), Buffer.from('{"id":"7"}', "utf16le")),
    record(400, 3, unsupported("application/json; charset=utf-16"))],
  ["Connect refuses text", "connect-json", post(deletePlantProcedure, typed("text/plain", connectVersion)),
    connectError(415, unsupported("text/plain"))],
  ["gRPC refuses an unknown codec", "grpc", post(deletePlantProcedure, typed("application/grpc+unheard-of")),
    grpcError("application/grpc", 3, unsupported("application/grpc+unheard-of"))],
];

/**
 * All contract requests with a wrong method or content type, or for an unknown RPC. Unknown REST paths are in
 * rest-table.ts.
 */
export const noCallTable: readonly NoCallTestCase[] = rows.map(([name, caller, request, want]) => {
  return { name, caller, request, want };
});
