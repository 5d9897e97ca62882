import { Code, ConnectError } from "@connectrpc/connect";
import { afterAll, describe, expect, test } from "vitest";
import { GreenhouseService } from "../../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
// oxfmt-ignore
import { encodeEnvelope, type Field, type HttpRequest, type HttpResponse, openEveryTransport, rpcRequest,
  transportNames, waterBedProcedure, waysFor, wireFormats } from "../../../../testing/src/index.ts";

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
  rest: {
    rules: [{ selector: `${GreenhouseService.typeName}.WatchReadings`, pattern: { case: "get", value: "/readings" } }],
  },
  admit: ({ header }) => failAt("admit", header),
});

afterAll(async () => await gateway[Symbol.asyncDispose]());
const watchReadings = "/greenhouse.v1.GreenhouseService/WatchReadings";
const { "connect-json": connect, grpc, "grpc-web": grpcWeb } = wireFormats;
const connectJson: Field = ["content-type", "application/connect+json"];
const message = encodeEnvelope(0, Buffer.from("{}"));

interface Way {
  readonly name: string;
  readonly isStream?: true;
  readonly request: (header: readonly Field[]) => HttpRequest;
}

// oxfmt-ignore
const ways: readonly Way[] = [
  { name: "REST", request: (header) => ({ httpMethod: "POST", path: "/beds/7:water", header }) },
  { name: "Connect", request: (header) => rpcRequest(connect, Buffer.from("{}"), header, waterBedProcedure) },
  { name: "gRPC", request: (header) => rpcRequest(grpc, Buffer.of(), header, waterBedProcedure) },
  { name: "gRPC-Web", request: (header) => rpcRequest(grpcWeb, Buffer.of(), header, waterBedProcedure) },
  { name: "a stream of REST", isStream: true, request: (header) => ({ httpMethod: "GET", path: "/readings", header }) },
  { name: "a stream of Connect", isStream: true,
    request: (header) => ({ httpMethod: "POST", path: watchReadings, header: [connectJson, ...header], body: message }) },
  { name: "a stream of gRPC", isStream: true,
    request: (header) => rpcRequest(grpc, Buffer.of(), header, watchReadings) },
  { name: "a stream of gRPC-Web", isStream: true,
    request: (header) => rpcRequest(grpcWeb, Buffer.of(), header, watchReadings) },
];

const rows = waysFor(transportNames).flatMap((transport) =>
  // Fetch has no trailers, which gRPC needs.
  ways.filter(({ name }) => !(transport === "Fetch" && name.endsWith("gRPC"))).map((way) => ({ transport, way })),
);

describe.each(rows)("an error in $way.name over $transport", ({ transport, way }) => {
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

describe.each(rows)("a handler's trailer in $way.name over $transport", ({ transport, way }) => {
  test("is sent without connection-specific fields", async () => {
    const plain = await askFor(transport, way.request([]));
    expect(await askFor(transport, way.request([["x-fields", ofConnection.join()]]))).toEqual(plain);
  });
});

async function askFor(...request: Parameters<typeof gateway.ask>): Promise<HttpResponse> {
  const { httpStatus, header, trailer, body } = await gateway.ask(...request);
  return { httpStatus, header: header.filter(([name]) => name !== "date"), trailer, body };
}
