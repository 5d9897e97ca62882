import type { Interceptor } from "@connectrpc/connect";
import { afterAll, beforeEach, describe, expect, test } from "vitest";
import { GreenhouseService } from "../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
// oxfmt-ignore
import { encodeEmpty, encodeEnvelope, type Field, type HttpRequest, type HttpResponse, openEveryTransport, readOutcome,
  rowsFor, rpcRequest, transportNames, waterBedProcedure, type WireFormat, wireFormats
} from "../../../testing/src/index.ts";

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

/** Replaces the header or trailer with the value that the request specifies. */
const interceptor: Interceptor = (next) => async (request) => {
  const response = await next(request);
  const requested = request.header.get("x-odd");
  const place = request.header.get("x-place") ?? "header";
  if (requested === "set")
    for (const [name, value] of [...transportFields, controlField]) response.header.set(name, value);
  const replaced = requested === "its own" ? request : odd[Number(requested)];
  return replaced === undefined ? response : { ...response, [place]: replaced.header };
};

const reported: string[] = [];
const gateway = await openEveryTransport({
  routes: (router) =>
    router.service(GreenhouseService, {
      waterBed: () => ({}),
      watchReadings: async function* () {
        yield {};
      },
    }),
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
  { name: "a stream of REST", request: (header) => ({ httpMethod: "GET", path: "/readings", header }),
    codeOf: ({ httpStatus, body }) => (httpStatus === 500 || body.includes('"@error":{"code":13,') ? 13 : 0) },
  { name: "a stream of Connect", request: (header) => ({ httpMethod: "POST",
      path: watchReadings,
      header: [["content-type", "application/connect+json"], ...header],
      body: encodeEnvelope(0, Buffer.from("{}")),
    }),
    codeOf: ({ httpStatus, body }) => (httpStatus === 200 && body.includes('"error":{"code":"internal"') ? 13 : 0) },
  wayOf("a stream of gRPC", grpc, watchReadings),
  wayOf("a stream of gRPC-Web", grpcWeb, watchReadings),
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
    expect([dated(response), way.codeOf(response)]).toEqual([dated(plain), 0]);
    expect(reported).toEqual([]);
  });
});

/** A response's header, with its date reduced to the day. */
function dated({ header }: HttpResponse): readonly Field[] {
  return header.map(([name, value]) => (name === "date" ? [name, value.slice(0, 16)] : [name, value]));
}
