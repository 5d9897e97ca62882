import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Endpoint, GatewayOptions } from "../../src/index.ts";
// oxfmt-ignore
import { encodeEnvelope, exchange, type Field, fieldValue, getReadingProcedure, type HttpRequest, startGreenhouse,
  type TestGreenhouse, waterBedProcedure } from "@protoport/testing";

// Shows which protocol responds, and how, to a wrong method (405), an unknown method (501) and a wrong content type
// (415).

/** The protocol that responds. REST uses its error record, Connect its JSON, and gRPC and gRPC-Web their status. */
type Responder = "rest" | "connect" | "grpc" | "grpc-web";

interface Refused {
  readonly name: string;
  readonly request: HttpRequest;
  readonly by: Responder;
  readonly httpStatus: 405 | 415 | 501;
  readonly message: string;
  /** The methods in the field Allow. */
  readonly allow?: string;
  /** The codings in the field Accept-Encoding. */
  readonly acceptEncoding?: string;
  /** The RPC that the error record sees, or `undefined` if none matched. */
  readonly procedure?: string;
}

const recordReadingsProcedure = "/greenhouse.v1.GreenhouseService/RecordReadings";
const connectVersion: Field = ["connect-protocol-version", "1"];
const form = "application/x-www-form-urlencoded";

function ask(httpMethod: string, path: string, ...header: readonly Field[]): HttpRequest {
  return { httpMethod, path, header };
}

function post(path: string, contentType: string, ...header: readonly Field[]): HttpRequest {
  return { ...ask("POST", path, ["content-type", contentType], ...header), body: Buffer.from("{}") };
}

// oxfmt-ignore
const wrongMethods: readonly Refused[] = [
  { name: "an RPC", request: ask("PUT", waterBedProcedure), by: "rest" as const },
  { name: "an RPC with a form", request: { ...post(waterBedProcedure, form), httpMethod: "PUT" }, by: "rest" as const },
  { name: "an RPC of Connect", request: ask("PUT", waterBedProcedure, connectVersion), by: "connect" as const },
  { name: "a stream of Connect",
    request: ask("PUT", recordReadingsProcedure, ["content-type", "application/connect+json"]),
    by: "connect" as const },
  // gRPC supports only POST, and defines no response to other methods.
  { name: "an RPC of gRPC", request: ask("PUT", waterBedProcedure, ["content-type", "application/grpc"]),
    by: "rest" as const },
  { name: "an RPC of gRPC-Web", request: ask("PUT", waterBedProcedure, ["content-type", "application/grpc-web-text"]),
    by: "rest" as const },
  { name: "an RPC without side effects", request: ask("PUT", getReadingProcedure), by: "rest" as const,
    allow: "GET, POST" },
  { name: "a rule", request: ask("PUT", "/sensors/a/reading"), by: "rest" as const, allow: "GET, HEAD" },
  { name: "a rule, of Connect", request: ask("PUT", "/beds/7:water", connectVersion), by: "connect" as const,
    allow: "POST" },
  { name: "an endpoint", request: ask("PUT", "/page"), by: "rest" as const, allow: "GET, HEAD" },
].map(({ allow = "POST", ...row }) => ({
  ...row,
  httpStatus: 405 as const,
  message: "PUT is not allowed for this path",
  allow,
}));

const unknownMethods: readonly Refused[] = [
  { name: "an RPC with an unknown method", path: waterBedProcedure },
  { name: "an RPC of Connect with an unknown method", path: waterBedProcedure, by: "connect" as const },
  { name: "a rule with an unknown method", path: "/beds/7:water" },
  { name: "an endpoint with an unknown method", path: "/page" },
  { name: "an unknown path with an unknown method", path: "/nothing" },
].map(({ name, path, by = "rest" as const }) => ({
  name,
  request: ask("BREW", path, ...(by === "connect" ? [connectVersion] : [])),
  by,
  httpStatus: 501 as const,
  message: "BREW is not supported by this server",
}));

const wrongTypes: readonly Refused[] = [
  { name: "an RPC with text", type: "text/plain" },
  { name: "an RPC with text, of Connect", type: "text/plain", more: [connectVersion], by: "connect" as const },
  { name: "an RPC with a stream of Connect", type: "application/connect+json", by: "connect" as const },
  { name: "a stream with a message of Connect", procedure: recordReadingsProcedure, type: "application/json" },
  { name: "an RPC with a format of gRPC", type: "application/grpc+unheard-of", by: "grpc" as const },
  { name: "an RPC with a format of gRPC-Web", type: "application/grpc-web+unheard-of", by: "grpc-web" as const },
  { name: "an RPC with what curl sends by -d", type: form, hint: "; with curl, use --json to send JSON" },
  // A stream does not accept the JSON that curl sends with --json.
  { name: "a stream with what curl sends by -d", procedure: recordReadingsProcedure, type: form },
].map(({ name, type, procedure = waterBedProcedure, more = [], by = "rest" as const, hint = "" }) => ({
  name,
  request: post(procedure, type, ...more),
  by,
  httpStatus: 415 as const,
  message: `the content type "${type}" is not supported${hint}`,
  procedure,
}));

const wrongEncoding = 'query parameter "encoding" must be one of proto, json';
// oxfmt-ignore
const otherTypes: readonly Refused[] = [
  { name: "an RPC with no type", request: ask("POST", waterBedProcedure), by: "rest", httpStatus: 415,
    message: "the content type is missing", procedure: waterBedProcedure },
  { name: "an RPC by GET without a message", request: ask("GET", getReadingProcedure), by: "rest", httpStatus: 415,
    message: wrongEncoding, procedure: getReadingProcedure },
  { name: "an RPC by GET of Connect in an unknown format",
    request: ask("GET", `${getReadingProcedure}?encoding=unheard-of&message=`, connectVersion), by: "connect",
    httpStatus: 415, message: wrongEncoding, procedure: getReadingProcedure },
  { name: "a rule with text", request: post("/beds/7:water", "text/plain"), by: "rest", httpStatus: 415,
    message: 'the content type must be application/json in UTF-8, got "text/plain"', procedure: waterBedProcedure },
  { name: "a rule with an unknown content coding",
    request: post("/beds/7:water", "application/json", ["content-encoding", "lzw"]), by: "rest", httpStatus: 415,
    message: "Content-Encoding must be one of gzip, br, zstd; to accept it, set the server option acceptCompression",
    acceptEncoding: "gzip, br, zstd", procedure: waterBedProcedure },
];

const rows = [...wrongMethods, ...unknownMethods, ...wrongTypes, ...otherTypes].flatMap((row) =>
  (["1.1", "2"] as const).map((httpVersion) => ({ ...row, httpVersion })),
);

/** The program's error record, with all its arguments. */
const configured: GatewayOptions["rest"] = {
  errorRecord: ({ rawMessage }, { httpStatus, procedure = "none" }) => ({
    httpStatus,
    body: `${rawMessage} (${httpStatus}, ${procedure})`,
  }),
};

describe.each([
  { record: "the default error record", rest: {} },
  { record: "a configured error record", rest: configured },
])("a gateway with $record", ({ rest }) => {
  let greenhouse: TestGreenhouse;
  beforeAll(async () => {
    const page: Endpoint = { path: "/page", open: true, handle: () => ({ httpStatus: 200, body: "" }) };
    greenhouse = await startGreenhouse({}, { endpoints: [page], rest });
  });
  afterAll(() => greenhouse[Symbol.asyncDispose]());

  test.each(rows)("refuses $name over HTTP/$httpVersion with $httpStatus (written by $by)", async (row) => {
    const response = await exchange(greenhouse.address, row.httpVersion, row.request);
    expect({
      httpStatus: response.httpStatus,
      allow: fieldValue(response.header, "allow"),
      acceptEncoding: fieldValue(response.header, "accept-encoding"),
      contentType: fieldValue(response.header, "content-type"),
      grpcStatus: fieldValue(response.header, "grpc-status"),
      body: String(response.body),
    }).toEqual({
      allow: row.allow,
      acceptEncoding: row.acceptEncoding,
      grpcStatus: undefined,
      ...responseOf(row, rest === configured),
    });
  });
});

test.each([
  ["gRPC", { grpc: false }, post(waterBedProcedure, "application/grpc+proto")],
  ["gRPC-Web", { grpcWeb: false }, post(waterBedProcedure, "application/grpc-web+proto")],
  ["Connect", { connect: false }, post(waterBedProcedure, "application/json", connectVersion)],
])("REST refuses %s with 415 if the protocol is disabled", async (_protocol, off, request) => {
  await using greenhouse = await startGreenhouse({}, off);
  for (const httpVersion of ["1.1", "2"] as const) {
    const { httpStatus, body } = await exchange(greenhouse.address, httpVersion, request);
    expect([httpStatus, String(body)]).toEqual([415, ""]);
  }
});

/** Returns the expected response on the wire. The gRPC protocols have their own status, with the HTTP status 200. */
function responseOf(
  { name: row, request, by, httpStatus, message, procedure = "none" }: Refused,
  isConfigured: boolean,
): object {
  const procedures = [waterBedProcedure, getReadingProcedure, recordReadingsProcedure];
  const isRpcPath = procedures.includes(request.path.split("?")[0] ?? "");
  // Requests that look like curl get the reason, which clients of Connect and gRPC would mistake for an error in their
  // protocol.
  const hasReason = isConfigured || !isRpcPath || httpStatus === 501 || /with (?:what curl|no type)/.test(row);
  if (!hasReason) return { httpStatus, contentType: undefined, body: "" };
  const [code, name] = httpStatus === 415 ? [3, "invalid_argument"] : [12, "unimplemented"];
  const contentType = "application/json";
  const inHeader = message.replaceAll(/[ "]/g, encodeURIComponent);
  switch (by) {
    case "rest": {
      const standard = { code, status: name.toUpperCase(), message, details: [] };
      const record = isConfigured ? `${message} (${httpStatus}, ${procedure})` : standard;
      return { httpStatus, contentType, body: JSON.stringify(record) };
    }
    case "connect":
      return { httpStatus, contentType, body: JSON.stringify({ code: name, message }) };
    case "grpc":
      return { httpStatus: 200, contentType: "application/grpc", grpcStatus: String(code), body: "" };
    case "grpc-web": {
      const trailer = Buffer.from(`grpc-message: ${inHeader}\r\ngrpc-status: ${code}\r\n`);
      return { httpStatus: 200, contentType: "application/grpc-web", body: String(encodeEnvelope(0x80, trailer)) };
    }
  }
}
