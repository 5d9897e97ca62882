import { once } from "node:events";
import type { ClientHttp2Stream } from "node:http2";
import { setImmediate as nextTurn } from "node:timers/promises";
import { create, toBinary } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { GetReadingRequestSchema, WaterBedRequestSchema } from "../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { createGateway, type GatewayOptions } from "../../src/index.ts";
// oxfmt-ignore
import { type Address, decodeBase64Parts, decodeEnvelopes, exchange, type Field, fieldValue, getReadingProcedure,
  type Http2Server, http2Servers, type HttpRequest, type HttpResponse, openHttp1, openHttp2, readHttp2Response,
  readOutcome, rpcRequest, startGreenhouse, type TestGreenhouse, waterBedProcedure, type WireFormat, wireFormats, wires,
  within } from "@protoport/testing";

// A message of exactly the limit is accepted, and a message of one byte more is refused.

const limitBytes = 100;
const tooMuch = Code.ResourceExhausted;
const json: Field = ["content-type", "application/json"];

/** Returns a message with this many bytes, whose response has the same size. */
function messageOf(format: WireFormat, bytes: number): Buffer {
  if (format.codec !== "proto") return Buffer.from(JSON.stringify({ note: "n".repeat(bytes - 11) }));
  // A tag and a length, with one byte each.
  return Buffer.from(toBinary(WaterBedRequestSchema, create(WaterBedRequestSchema, { note: "n".repeat(bytes - 2) })));
}

function requestOf(format: WireFormat, bytes: number, ...more: readonly Field[]): HttpRequest {
  const message = messageOf(format, bytes);
  if (format.protocol !== "rest") return rpcRequest(format, message, more, waterBedProcedure);
  return { httpMethod: "POST", path: "/beds/0:water", header: [json, ...more], body: message };
}

/** A response's code, or 0 for a message. */
function codeOf(format: WireFormat, response: HttpResponse): unknown {
  if (format.protocol !== "rest") return readOutcome(format, response).code;
  const body: unknown = JSON.parse(String(response.body));
  return typeof body === "object" && body !== null && "code" in body ? body.code : 0;
}

/** Greenhouses on both HTTP servers for a group's tests, whose beds echo the request. */
class Greenhouses {
  readonly #started = new Map<string, TestGreenhouse>();

  constructor(options: Partial<GatewayOptions>) {
    const implementation = { waterBed: ({ note }: { note: string }) => ({ note }), getReading: () => ({}) };
    beforeAll(async () => {
      for (const http2 of http2Servers)
        this.#started.set(http2, await startGreenhouse(implementation, options, { http2 }));
    });
    afterAll(async () => {
      for (const greenhouse of this.#started.values()) await greenhouse[Symbol.asyncDispose]();
    });
  }

  address(http2: Http2Server): Address {
    const greenhouse = this.#started.get(http2);
    if (greenhouse === undefined) throw new Error("the greenhouse has not started");
    return greenhouse.address;
  }
}

describe("readMaxBytes", () => {
  const greenhouses = new Greenhouses({ readMaxBytes: limitBytes });
  const rows = wires.flatMap(({ name, ...wire }) =>
    wire.httpVersion === "1.1"
      ? [{ ...wire, name, http2: "listening" as const }]
      : http2Servers.map((http2) => ({ ...wire, name: `${name} ${http2}`, http2 })),
  );

  test.each(rows)("over $name limits the message size", async ({ format, httpVersion, http2 }) => {
    const codes: unknown[] = [];
    for (const bytes of [limitBytes, limitBytes + 1])
      codes.push(codeOf(format, await exchange(greenhouses.address(http2), httpVersion, requestOf(format, bytes))));
    expect(codes).toEqual([0, tooMuch]);
  });

  test.each([
    { name: "text", parameters: (message: Buffer) => `message=${encodeURIComponent(String(message))}` },
    { name: "base64", parameters: (message: Buffer) => `base64=1&message=${message.toString("base64url")}` },
  ])("limits a $name message in a query", async ({ parameters }) => {
    const codes: unknown[] = [];
    for (const bytes of [limitBytes, limitBytes + 1]) {
      const message = create(GetReadingRequestSchema, { sensor: "n".repeat(bytes - 2) });
      const query = parameters(Buffer.from(toBinary(GetReadingRequestSchema, message)));
      const request = { httpMethod: "GET", path: `${getReadingProcedure}?encoding=proto&${query}`, header: [] };
      const response = await exchange(greenhouses.address("listening"), "1.1", request);
      codes.push(codeOf(wireFormats["connect-proto"], response));
    }
    expect(codes).toEqual([0, tooMuch]);
  });
});

/** A request that is sent in parts, each of which arrives before the next is sent. */
interface SlowRequest {
  readonly address: Address;
  readonly request: HttpRequest;
  readonly parts: readonly Buffer[];
  /** Whether its body ends. */
  readonly ends: boolean;
  /** Called when all parts have arrived. */
  readonly sent?: () => void;
}

async function sendChunks({ address, request, parts, ends, sent }: SlowRequest): Promise<HttpResponse> {
  using connection = await openHttp1(address);
  connection.request({ ...request, body: Buffer.of(), header: [...request.header, ["transfer-encoding", "chunked"]] });
  for (const part of parts) {
    connection.write(Buffer.concat([Buffer.from(`${part.byteLength.toString(16)}\r\n`), part, Buffer.from("\r\n")]));
    for (let turn = 0; turn < 5; turn++) await nextTurn();
  }
  if (ends) connection.write("0\r\n\r\n");
  sent?.();
  return await connection.readResponse();
}

async function sendFrames({ address, request, parts, ends, sent }: SlowRequest): Promise<HttpResponse> {
  using connection = await openHttp2(address);
  const stream = connection.open(request, { endStream: false });
  const response = ends ? readHttp2Response(stream) : readUnfinished(stream);
  // When a PING is acknowledged, everything that was sent before it has arrived.
  const settled = (): Promise<unknown> => new Promise((resolve) => connection.session.ping(resolve));
  for (const part of parts) {
    stream.write(part);
    await settled();
  }
  if (ends) stream.end();
  await settled();
  sent?.();
  return await response;
}

/** The response to a request that does not end. */
async function readUnfinished(stream: ClientHttp2Stream): Promise<HttpResponse> {
  const body: Buffer[] = [];
  stream.on("error", () => {}).on("data", (piece: Buffer) => body.push(piece));
  await within(once(stream, "end"), "a response");
  return { httpStatus: 0, header: [], trailer: [], body: Buffer.concat(body) };
}

/** How a body is split, and whether it arrives before it is read. */
const comings = [
  { coming: "in one part", cut: 0, early: false },
  { coming: "in two parts", cut: 50, early: false },
  { coming: "while admit runs", cut: 0, early: true },
];

describe.each([
  { transport: "HTTP/1.1", http2: "listening", send: sendChunks },
  { transport: "HTTP/2, mounted", http2: "mounted", send: sendFrames },
  { transport: "HTTP/2", http2: "listening", send: sendFrames },
] as const)("readMaxBytes over $transport", ({ http2, send }) => {
  const format = wireFormats["connect-proto"];
  let admission = Promise.withResolvers<void>();
  const greenhouses = new Greenhouses({ readMaxBytes: limitBytes, admit: () => admission.promise });

  test.each(comings)("limits a body that arrives $coming, without a length", async ({ cut, early }) => {
    const codes: unknown[] = [];
    for (const bytes of [limitBytes, limitBytes + 1]) {
      admission = Promise.withResolvers();
      if (!early) admission.resolve();
      const request = requestOf(format, bytes);
      const body = Buffer.from(request.body ?? []);
      const parts = cut === 0 ? [body] : [body.subarray(0, cut), body.subarray(cut)];
      const address = greenhouses.address(http2);
      // A body that is too long is refused before it ends.
      const ends = bytes === limitBytes;
      codes.push(codeOf(format, await send({ address, request, parts, ends, sent: admission.resolve })));
    }
    expect(codes).toEqual([0, tooMuch]);
  });
});

describe.each(http2Servers)("readMaxBytes over HTTP/2 (%s)", (http2) => {
  const format = wireFormats["connect-proto"];
  const greenhouses = new Greenhouses({ readMaxBytes: limitBytes });

  test("applies to Content-Length before the body arrives", async () => {
    const codes: unknown[] = [];
    for (const bytes of [limitBytes, limitBytes + 1]) {
      const request = requestOf(format, bytes, ["content-length", String(bytes)]);
      const ends = bytes === limitBytes;
      const parts = ends ? [Buffer.from(request.body ?? [])] : [];
      codes.push(codeOf(format, await sendFrames({ address: greenhouses.address(http2), request, parts, ends })));
    }
    expect(codes).toEqual([0, tooMuch]);
  });
});

describe("a response", () => {
  const compressing = new Greenhouses({ compressMinBytes: limitBytes });
  const limited = new Greenhouses({ writeMaxBytes: limitBytes });
  const accepting: readonly Field[] = Object.entries({ "accept-encoding": "gzip", "grpc-accept-encoding": "gzip" });

  test.each(wires)("over $name is compressed if it has at least compressMinBytes", async ({ format, httpVersion }) => {
    const compressed: boolean[] = [];
    // The last message is long enough to be sent without a copy.
    for (const bytes of [limitBytes - 1, limitBytes, 64 * 1024]) {
      const request = requestOf(format, bytes, ...accepting);
      compressed.push(isCompressed(format, await exchange(compressing.address("listening"), httpVersion, request)));
    }
    expect(compressed).toEqual([false, true, true]);
  });

  test.each(wires)("over $name is compressed only for clients that accept it", async ({ format, httpVersion }) => {
    const response = await exchange(compressing.address("listening"), httpVersion, requestOf(format, 64 * 1024));
    expect([codeOf(format, response), isCompressed(format, response)]).toEqual([0, false]);
  });

  test.each(wires.filter(({ format }) => format.protocol !== "rest"))(
    "over $name is limited to writeMaxBytes",
    async ({ format, httpVersion }) => {
      const codes: unknown[] = [];
      for (const bytes of [limitBytes, limitBytes + 1])
        codes.push(codeOf(format, await exchange(limited.address("listening"), httpVersion, requestOf(format, bytes))));
      expect(codes).toEqual([0, tooMuch]);
    },
  );
});

function isCompressed(format: WireFormat, { header, body }: HttpResponse): boolean {
  if (format.protocol === "rest" || format.protocol === "connect")
    return fieldValue(header, "content-encoding") === "gzip";
  const [message] = decodeEnvelopes(format.name === "grpc-web-text" ? decodeBase64Parts(body) : body);
  return message?.flags === 1;
}

describe("maxTimeoutMs", () => {
  const greenhouses = new Greenhouses({ maxTimeoutMs: 60_000 });

  test.each(wires)("over $name limits a client's timeout", async ({ format, httpVersion }) => {
    const codes: unknown[] = [];
    for (const timeoutMs of [60_000, 60_001]) {
      const field = format.timeout?.(timeoutMs) ?? (["connect-timeout-ms", String(timeoutMs)] as const);
      const request = requestOf(format, limitBytes, field);
      codes.push(codeOf(format, await exchange(greenhouses.address("listening"), httpVersion, request)));
    }
    expect(codes).toEqual([0, Code.InvalidArgument]);
  });
});

// oxfmt-ignore
const greatestLimits: Required<GatewayOptions>["limits"] = {
  headerBytes: 2 ** 30 - 1, urlBytes: 2 ** 30 - 1, headerTimeoutMs: Number.POSITIVE_INFINITY,
  requestTimeoutMs: Number.POSITIVE_INFINITY, idleTimeoutMs: Number.POSITIVE_INFINITY, concurrentStreams: 2 ** 32 - 1,
  connectionWindowBytes: 2 ** 31 - 1, backlogBytes: Number.MAX_SAFE_INTEGER, connections: Number.POSITIVE_INFINITY,
  defaultTimeoutMs: Number.POSITIVE_INFINITY,
};

describe("the limits of a gateway", () => {
  const limitNames = Object.keys(greatestLimits);
  const allOf = (value: unknown): object => Object.fromEntries(limitNames.map((name) => [name, value]));

  test.each([
    { name: "undefined", limits: allOf(undefined) },
    { name: "the greatest values", limits: greatestLimits },
  ])("may be $name", async ({ limits }) => {
    await using greenhouse = await startGreenhouse({ waterBed: () => ({}) }, { limits });
    for (const version of ["1.1", "2"] as const) {
      const { httpStatus } = await exchange(greenhouse.address, version, requestOf(wireFormats.rest, 20));
      expect(httpStatus).toBe(200);
    }
  });

  test.each(limitNames)("may not include a negative, fractional or non-numeric %s", (name) => {
    for (const value of [-1, 1.5, Number.NaN, "1"]) {
      const limits = { [name]: value };
      expect(() => createGateway({ routes: () => {}, limits })).toThrow(
        `option "limits.${name}" of createGateway must`,
      );
    }
  });
});
