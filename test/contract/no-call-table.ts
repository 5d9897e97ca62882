import { encodeEnvelope } from "../../protoport/testing/src/gateway/envelope.ts";
import type { Field, HttpRequest } from "../../protoport/testing/src/http/exchange.ts";
import { type WireFormatName } from "../../protoport/testing/src/gateway/wire-format.ts";
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

const noProcedure = "/plantstore.v1.PlantService/PlantForest";
const message = encodeEnvelope(0, Buffer.from([8, 7]));
const connectVersion: Field = ["connect-protocol-version", "1"];
const type = (contentType: string): Field => ["content-type", contentType];

const nothingHere = "no route matches this path";
const unsupported = (contentType: string): string => `the content type "${contentType}" is not supported`;

function record(
  httpStatus: number,
  error: number,
  text: string,
  fields: Record<string, string> = {},
): ComparedResponse {
  const body = JSON.stringify({ error, message: text });
  return { httpStatus, header: { "content-type": "application/json", ...fields }, trailer: {}, messages: [body] };
}

function connectError(
  httpStatus: number,
  code: string,
  text: string,
  fields: Record<string, string> = {},
): ComparedResponse {
  const body = JSON.stringify({ code, message: text });
  return { httpStatus, header: { "content-type": "application/json", ...fields }, trailer: {}, messages: [body] };
}

function trailersOnly(contentType: string, status: number, text: string): ComparedResponse {
  const header = { "content-type": contentType, "grpc-status": String(status), "grpc-message": text };
  return { httpStatus: 200, header, trailer: {}, messages: [] };
}

function webTrailers(contentType: string, status: number, text: string): ComparedResponse {
  const trailer = { "grpc-status": String(status), "grpc-message": text };
  return { httpStatus: 200, header: { "content-type": contentType }, trailer, messages: [] };
}

const post = (path: string, header: readonly Field[], body: Uint8Array = message): HttpRequest => ({
  httpMethod: "POST",
  path,
  header,
  body,
});

/** Paths without an operation. */
// oxfmt-ignore
const unknownPathCases: readonly NoCallTestCase[] = [
  ...["application/grpc", "application/grpc+proto", "application/grpc+json"].map((contentType): NoCallTestCase => ({ name: `an unknown RPC is unimplemented for ${contentType}`,
    caller: "grpc",
    request: post(noProcedure, [type(contentType)]),
    want: trailersOnly(contentType, 12, nothingHere),
  })),
  ...(["application/grpc-web", "application/grpc-web+proto", "application/grpc-web-text"] as const).map(
    (contentType): NoCallTestCase => ({ name: `an unknown RPC is unimplemented for ${contentType}`,
      caller: contentType === "application/grpc-web-text" ? "grpc-web-text" : "grpc-web",
      request: post(noProcedure, [type(contentType)]),
      want: webTrailers(contentType, 12, nothingHere),
    }),
  ),
  ...Object.entries({ "an unknown RPC is unimplemented for an unknown gRPC codec": [noProcedure, "application/grpc+unheard-of"],
    "an unknown service is unimplemented": ["/forest.v1.ForestService/FellTree", "application/grpc"],
    "the path of an RPC with a trailing slash is unimplemented": [`${deletePlantProcedure}/`, "application/grpc"],
    "the path of an RPC in lower case is unimplemented": [deletePlantProcedure.toLowerCase(), "application/grpc"],
  }).map(([name, [path = "", contentType = ""]]): NoCallTestCase => ({ name,
    caller: "grpc",
    request: post(path, [type(contentType)]),
    want: trailersOnly("application/grpc", 12, nothingHere),
  })),
  { name: "an unknown RPC is unimplemented for Connect", caller: "connect-json",
    request: post(noProcedure, [type("application/json"), connectVersion], Buffer.from("{}")),
    want: connectError(404, "unimplemented", nothingHere) },
  { name: "a Connect stream without a version is not treated as REST", caller: "connect-json",
    request: post(noProcedure, [type("application/connect+json")]),
    want: connectError(404, "unimplemented", nothingHere) },
  { name: "JSON without a Connect version is treated as REST", caller: "rest",
    request: post(noProcedure, [type("application/json")], Buffer.from("{}")), want: record(404, 5, nothingHere) },
  { name: "an unknown path gets the error record for any body", caller: "rest",
    request: post("/forest", [type("text/html")], Buffer.from("<p>")), want: record(404, 5, nothingHere) },
];

/** Methods other than DELETE on the operation's path. */
const plantMethodCases: readonly NoCallTestCase[] = [
  ...["GET", "HEAD", "POST", "PUT", "PATCH", "OPTIONS", "TRACE", "PROPFIND", "QUERY"].map((httpMethod) => ({
    name: `${httpMethod} is not allowed on a plant`,
    request: { httpMethod, path: "/plants/7", header: [] },
  })),
  {
    name: "X-HTTP-Method-Override is ignored",
    request: { httpMethod: "POST", path: "/plants/7", header: [["x-http-method-override", "DELETE"] as const] },
  },
].map(({ name, request }) => ({
  name,
  caller: "rest",
  request,
  want: record(405, 12, `${request.httpMethod} is not allowed for this path`, { allow: "DELETE" }),
}));

/** An unknown method, on paths with and without other methods. */
// oxfmt-ignore
const unknownMethodCases: readonly NoCallTestCase[] = [
  ...["/plants/7", "/forest", deletePlantProcedure].map((path): NoCallTestCase => ({ name: `PURGE ${path} is not implemented`,
    caller: "rest",
    request: { httpMethod: "PURGE", path, header: [] },
    want: record(501, 12, "PURGE is not supported by this server"),
  })),
  { name: "PURGE is not implemented over Connect", caller: "connect-json",
    request: { httpMethod: "PURGE", path: deletePlantProcedure, header: [connectVersion] },
    want: connectError(501, "unimplemented", "PURGE is not supported by this server") },
  { name: "PURGE is not implemented over gRPC", caller: "grpc",
    request: { httpMethod: "PURGE", path: deletePlantProcedure, header: [type("application/grpc")] },
    want: record(501, 12, "PURGE is not supported by this server") },
];

/** Methods other than POST on the RPC's path. */
const methodCases: readonly NoCallTestCase[] = ["GET", "PUT", "DELETE", "PATCH", "OPTIONS"].flatMap(
  (httpMethod): NoCallTestCase[] => {
    const request = (header: readonly Field[]): HttpRequest => ({ httpMethod, path: deletePlantProcedure, header });
    const text = `${httpMethod} is not allowed for this path`;
    const allow = { allow: "POST" };
    // oxfmt-ignore
    return [
      { name: `${httpMethod} is not allowed on an RPC`, caller: "rest", request: request([]),
        want: record(405, 12, text, allow) },
      { name: `${httpMethod} is not allowed on an RPC over Connect`, caller: "connect-json",
        request: request([connectVersion]), want: connectError(405, "unimplemented", text, allow) },
      { name: `${httpMethod} is not allowed on an RPC over gRPC`, caller: "grpc",
        request: request([type("application/grpc")]), want: record(405, 12, text, allow) },
    ];
  },
);

/** Content types that the RPC does not support. */
// oxfmt-ignore
const contentTypeCases: readonly NoCallTestCase[] = [
  ...["text/plain", "application/xml", "application/protobuf", "json"].map((contentType): NoCallTestCase => ({ name: `${contentType} is not a supported content type`,
    caller: "rest",
    request: post(deletePlantProcedure, [type(contentType)]),
    want: record(400, 3, unsupported(contentType)),
  })),
  { name: "the form content type of curl -d is refused with a hint to --json", caller: "rest",
    request: post(deletePlantProcedure, [type("application/x-www-form-urlencoded")]),
    want: record(400, 3, `${unsupported("application/x-www-form-urlencoded")}; with curl, use --json to send JSON`) },
  { name: "JSON in another charset than UTF-8 is refused", caller: "rest", request: post(
      deletePlantProcedure,
      [type("application/json; charset=utf-16")],
      Buffer.from('{"id":"7"}', "utf16le"),
    ), want: record(400, 3, unsupported("application/json; charset=utf-16")) },
  { name: "a missing content type is refused", caller: "rest", request: post(deletePlantProcedure, []),
    want: record(400, 3, "the content type is missing") },
  { name: "Connect refuses text", caller: "connect-json",
    request: post(deletePlantProcedure, [type("text/plain"), connectVersion]),
    want: connectError(415, "invalid_argument", unsupported("text/plain")) },
  { name: "a unary RPC refuses the content type of Connect streams", caller: "connect-json",
    request: post(deletePlantProcedure, [type("application/connect+proto"), connectVersion]),
    want: connectError(415, "invalid_argument", unsupported("application/connect+proto")) },
  { name: "gRPC refuses an unknown codec", caller: "grpc",
    request: post(deletePlantProcedure, [type("application/grpc+unheard-of")]),
    want: trailersOnly("application/grpc", 3, unsupported("application/grpc+unheard-of")) },
  { name: "gRPC-Web refuses an unknown codec", caller: "grpc-web",
    request: post(deletePlantProcedure, [type("application/grpc-web+unheard-of")]),
    want: webTrailers("application/grpc-web", 3, unsupported("application/grpc-web+unheard-of")) },
];

/**
 * All contract requests with a wrong method or content type, or for an unknown RPC. Unknown REST paths are in
 * rest-table.ts.
 */
export const noCallTable: readonly NoCallTestCase[] = [
  ...unknownPathCases,
  ...plantMethodCases,
  ...unknownMethodCases,
  ...methodCases,
  ...contentTypeCases,
];
