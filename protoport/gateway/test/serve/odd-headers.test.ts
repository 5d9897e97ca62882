import { Code, ConnectError, type Interceptor } from "@connectrpc/connect";
import { afterAll, beforeEach, describe, expect, test } from "vitest";
import { GreenhouseService } from "../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
// oxfmt-ignore
import { encodeEmpty, encodeEnvelope, type Field, type HttpRequest, type HttpResponse, openEveryTransport, readOutcome,
  rowsFor, rpcRequest, transportNames, waterBedProcedure, waysFor, type WireFormat, wireFormats
} from "@protoport/testing";

/** Invalid headers that applications in JavaScript return. */
const odd = [
  { name: "a name with a space", header: new Map([["x user", "a"]]) },
  { name: "a name that starts with a colon", header: new Map([[":x", "a"]]) },
  { name: "the name of a pseudo-header field", header: new Map([[":status", "201"]]) },
  { name: "an empty name", header: new Map([["", "a"]]) },
  { name: "a character above U+00FF", header: new Map([["x-user", "\u010a"]]) },
  { name: "a plain object", header: { "x-user": "a" } },
  { name: "no value", header: undefined },
];

/** Fields that the gateway sets itself and handlers cannot change. */
const transportFields: readonly Field[] = [
  ["content-length", "1"],
  ["connection", "x-odd"],
  ["Date", "Thu, 01 Jan 1970 00:00:00 GMT"],
  ["transfer-encoding", "x-odd"],
  ["keep-alive", "timeout=5"],
  ["upgrade", "h2c"],
  ["te", "gzip"],
  ["trailer", "x"],
];

/** A field that `Headers` allows, and HTTP does not. */
const controlField: Field = ["x-control", "a\u0001b"];

/** Fields that the gateway sets itself and hooks cannot add. */
const ownFields: readonly Field[] = [
  ...transportFields,
  ["Content-Type", "text/x-odd"],
  ["content-encoding", "x-odd"],
  ["TE", "x-odd"],
  ["http2-settings", "x-odd"],
];

// A thrown error's metadata become header fields or trailers in the response, except fields that frame the response. A
// handler may have copied such fields from another server's response.

// oxfmt-ignore
const framing: Readonly<Record<string, string>> = {
  "content-type": "text/x-odd", "content-encoding": "gzip", "content-length": "1", "transfer-encoding": "chunked",
  connection: "close", "keep-alive": "timeout=1", "proxy-connection": "close", upgrade: "h2c", te: "trailers",
  trailer: "x-odd", "http2-settings": "AAMAAABk", date: "Thu, 01 Jan 1970 00:00:00 GMT", host: "odd.example",
  "grpc-status": "0", "grpc-message": "odd", "grpc-status-details-bin": "AAAA", "grpc-encoding": "gzip",
  "grpc-accept-encoding": "gzip", "connect-content-encoding": "gzip", "connect-protocol-version": "2",
  "x-control": "a\u0001b",
};

// Before Connect 2.2, errors have no isWireError, so an error with a content type is treated as received, and none of
// its metadata is sent.
const framingNames = Object.keys(framing).filter(
  (name) => name !== "content-type" || "isWireError" in new ConnectError("no such bed"),
);

/**
 * Fields that describe the connection or the message, which are not sent if a handler copies them from another
 * response.
 */
// oxfmt-ignore
const ofConnection = [
  "content-length", "transfer-encoding", "connection", "keep-alive", "proxy-connection", "upgrade", "te", "trailer",
  "http2-settings", "date", "x-control",
];

/** Where the error is thrown. */
const places = ["admit", "a handler", "a handler after a message"] as const;

/** Returns the framing fields that the request names, with the values in `framing`. */
const oddFieldsOf = (header: { get(name: string): string | null }): [name: string, value: string][] =>
  (header.get("x-fields")?.split(",") ?? []).map((name) => [name, framing[name] ?? ""]);

/** Throws the error that the request specifies for this place. */
function failAt(place: string, header: { get(name: string): string | null }): void {
  if (header.get("x-place") !== place) return;
  throw new ConnectError("no such bed", Code.NotFound, [["x-why", "drought"], ...oddFieldsOf(header)]);
}

/** Sets the trailers that the request specifies. */
function copyTrailers(header: Headers, trailer: Headers): void {
  trailer.set("x-why", "drought");
  for (const [name, value] of oddFieldsOf(header)) trailer.set(name, value);
}

/** Replaces the header or trailer with the value that the request specifies. */
const interceptor: Interceptor = (next) => async (request) => {
  const response = await next(request);
  const requested = request.header.get("x-odd");
  const place = request.header.get("x-place") ?? "header";
  if (requested === "set")
    for (const [name, value] of [...transportFields, controlField]) response.header.set(name, value);
  const replaced = requested === "its own" ? request : odd[Number(requested ?? "none")];
  return replaced === undefined ? response : { ...response, [place]: replaced.header };
};

const reported: string[] = [];
const gateway = await openEveryTransport({
  routes: (router) =>
    router.service(GreenhouseService, {
      waterBed: (_, { requestHeader, responseTrailer }) => {
        failAt("a handler", requestHeader);
        copyTrailers(requestHeader, responseTrailer);
        return {};
      },
      async *watchReadings(_, { requestHeader, responseTrailer }) {
        failAt("a handler", requestHeader);
        yield {};
        failAt("a handler after a message", requestHeader);
        copyTrailers(requestHeader, responseTrailer);
      },
    }),
  admit: ({ header }) => failAt("admit", header),
  interceptors: [interceptor],
  rest: {
    rules: [{ selector: `${GreenhouseService.typeName}.WatchReadings`, pattern: { case: "get", value: "/readings" } }],
  },
  onRequest: (request) => {
    if (request.header.get("x-odd") !== "added") return;
    for (const [name, value] of ownFields) request.addResponseHeader(name, value);
  },
  onFault: (_, what) => reported.push(what),
});

afterAll(async () => await gateway[Symbol.asyncDispose]());

beforeEach(() => {
  reported.length = 0;
});

const { "connect-json": connect, grpc, "grpc-web": grpcWeb } = wireFormats;
const watchReadings = "/greenhouse.v1.GreenhouseService/WatchReadings";

/** A call, and how to read its code. */
interface Way {
  readonly name: string;
  readonly isStream?: true;
  readonly request: (header: readonly Field[]) => HttpRequest;
  readonly codeOf: (response: HttpResponse) => number;
}

function wayOf(name: string, format: WireFormat, procedure: string): Way {
  const message = encodeEmpty(format);
  const codeOf = (response: HttpResponse): number => readOutcome(format, response).code;
  return { name, request: (header) => rpcRequest(format, message, header, procedure), codeOf };
}

// oxfmt-ignore
const ways: readonly Way[] = [
  { name: "REST", request: (header) => ({ httpMethod: "POST", path: "/beds/7:water", header }),
    codeOf: ({ httpStatus }) => (httpStatus === 500 ? 13 : 0) },
  wayOf("Connect", connect, waterBedProcedure),
  wayOf("gRPC", grpc, waterBedProcedure),
  wayOf("gRPC-Web", grpcWeb, waterBedProcedure),
  { name: "a stream of REST", isStream: true, request: (header) => ({ httpMethod: "GET", path: "/readings", header }),
    codeOf: ({ httpStatus, body }) => (httpStatus === 500 || body.includes('"@error":{"code":13,') ? 13 : 0) },
  { name: "a stream of Connect", isStream: true, request: (header) => ({ httpMethod: "POST",
      path: watchReadings,
      header: [["content-type", "application/connect+json"], ...header],
      body: encodeEnvelope(0, Buffer.from("{}")),
    }),
    codeOf: ({ httpStatus, body }) => (httpStatus === 200 && body.includes('"error":{"code":"internal"') ? 13 : 0) },
  { ...wayOf("a stream of gRPC", grpc, watchReadings), isStream: true },
  { ...wayOf("a stream of gRPC-Web", grpcWeb, watchReadings), isStream: true },
];

const rows = transportNames.flatMap((transport) => {
  const possible = ways.filter(({ name }) => {
    // Fetch has no trailers, which gRPC needs.
    if (name.endsWith("gRPC")) return transport !== "Fetch";
    // For HTTP servers, Connect and gRPC-Web responses are like REST responses.
    return transport === "the engine's HTTP/2" || name.endsWith("REST");
  });
  return possible.map((way) => ({ transport, way }));
});

describe.each(rows)("over $transport in $way.name", (row) => {
  const { transport, way } = row;
  // Every way is tested without a value, because unary calls and streams have separate code.
  const missing = odd.filter(({ header }) => header === undefined);
  test.each([...new Set([...rowsFor(row, rows, odd), ...missing])])(
    "a header or trailer with $name is reported and results in Internal",
    async ({ header }) => {
      for (const place of ["header", "trailer"]) {
        const at = String(odd.findIndex((each) => each.header === header));
        const request = way.request(Object.entries({ "x-odd": at, "x-place": place }));
        expect.soft(way.codeOf(await gateway.ask(transport, request)), place).toBe(13);
        expect.soft(reported.splice(0), place).toEqual(["cannot write the response"]);
      }
    },
  );

  test("the header of the request is sent back without its pseudo-header fields", async () => {
    const request = way.request(Object.entries({ "x-odd": "its own", "x-place": "header" }));
    const response = await gateway.ask(transport, request);
    expect(way.codeOf(response)).toBe(0);
    expect(response.header).toContainEqual(["x-odd", "its own"]);
    expect(reported).toEqual([]);
  });

  test.each(["added", "set"])("the gateway's own fields stay unchanged (%s by the handler)", async (how) => {
    const plain = await gateway.ask(transport, way.request([["x-odd", "none"]]));
    const response = await gateway.ask(transport, way.request([["x-odd", how]]));
    expect([dated(response), way.codeOf(response), reported]).toEqual([dated(plain), 0, []]);
  });
});

/** A response's header, with its date reduced to the day. */
function dated({ header }: HttpResponse): readonly Field[] {
  return header.map(([name, value]) => (name === "date" ? [name, value.slice(0, 16)] : [name, value]));
}

const everyRow = waysFor(transportNames).flatMap((transport) =>
  // Fetch has no trailers, which gRPC needs.
  ways.filter(({ name }) => !(transport === "Fetch" && name.endsWith("gRPC"))).map((way) => ({ transport, way })),
);

describe.each(everyRow)("an error in $way.name over $transport", ({ transport, way }) => {
  const thrown = places.filter((place) => way.isStream === true || place !== "a handler after a message");

  test.each(thrown)("is sent without framing fields when %s throws it", async (place) => {
    const ask = (fields: readonly Field[]): Promise<HttpResponse> =>
      askFor(transport, way.request([["x-place", place], ...fields]));
    const plain = await ask([]);
    const text = JSON.stringify([plain.header, plain.trailer, plain.body.toString()]);
    expect(text).toMatch(/no(?: |%20)such(?: |%20)bed/);
    // In REST, an error after the response has begun is in the body, which cannot have metadata.
    const isInBody = way.name === "a stream of REST" && place === "a handler after a message";
    expect([text.includes("drought"), await ask([["x-fields", framingNames.join()]])]).toEqual([!isInBody, plain]);
  });
});

describe.each(everyRow)("a handler's trailer in $way.name over $transport", ({ transport, way }) => {
  test("is sent without connection-specific fields", async () => {
    const plain = await askFor(transport, way.request([]));
    expect(await askFor(transport, way.request([["x-fields", ofConnection.join()]]))).toEqual(plain);
  });
});

async function askFor(...request: Parameters<typeof gateway.ask>): Promise<HttpResponse> {
  const { httpStatus, header, trailer, body } = await gateway.ask(...request);
  return { httpStatus, header: header.filter(([name]) => name !== "date"), trailer, body };
}
