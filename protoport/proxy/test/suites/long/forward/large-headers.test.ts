import { createServer, type ServerHttp2Stream } from "node:http2";
import { Code } from "@connectrpc/connect";
import { expect, onTestFinished, test } from "vitest";
import { GreenhouseService } from "../../../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { createUpstream } from "../../../../src/upstreams/index.ts";
// oxfmt-ignore
import { exchangeHttp1, exchangeHttp2, type Field, fieldValue, type HttpRequest, type HttpResponse, openHttp2
} from "@protoport/testing/http";
import { dataFrame, type Frame, frame, frameFlag, frameType, headerBlock, listenOnLoopback } from "@protoport/testing";
import { grpcHead, settingFrame, startProxy, startScriptedServer, watered } from "@protoport/testing/proxy";

// Header and trailer sections near their limit, which is 64 KiB in both directions.

const files = [GreenhouseService.file];
const grpcHeader: readonly Field[] = Object.entries({ "content-type": "application/grpc+proto", te: "trailers" });
const path = "/greenhouse.v1.GreenhouseService/WaterBed";
const grpcCall: HttpRequest = { httpMethod: "POST", path, header: grpcHeader, body: watered };

function fieldsOf(bytes: number): Field[] {
  const value = "v".repeat(1_000 - 32 - "x-field-000".length);
  return Array.from({ length: bytes / 1_000 }, (_, at) => [`x-field-${String(at).padStart(3, "0")}`, value]);
}

/** A response whose sections are sent in frames with the largest size. */
function largeResponse(id: number, body: Uint8Array, trailer: readonly Field[], head: readonly Field[]): Frame[] {
  return [...sectionFrames(id, head, 0), dataFrame(id, body), ...sectionFrames(id, trailer, frameFlag.endStream)];
}

function sectionFrames(id: number, fields: readonly Field[], flags: number): Frame[] {
  const block = headerBlock(fields);
  const frames: Frame[] = [];
  for (let at = 0; at < block.byteLength; at += 16_384) {
    const payload = block.subarray(at, at + 16_384);
    const last = at + 16_384 >= block.byteLength ? frameFlag.endHeaders : 0;
    const type = at === 0 ? frameType.headers : frameType.continuation;
    frames.push(frame(type, last | (at === 0 ? flags : 0), id, payload));
  }
  return frames;
}

const success: readonly Field[] = [["grpc-status", "0"]];
const failed = String(Code.FailedPrecondition);
const failure: readonly Field[] = Object.entries({ "grpc-status": failed, "grpc-message": "no water" });

function statusOf({ header, trailer }: HttpResponse): (string | undefined)[] {
  const fields = [...header, ...trailer];
  const message = fieldValue(fields, "grpc-message");
  return [fieldValue(fields, "grpc-status"), message && decodeURIComponent(message)];
}

const largeFields = (fields: readonly Field[]): Field[] => fields.filter(([name]) => name.startsWith("x-field-"));

test.each([20_000, 40_000, 60_000])("a header and a trailer with %i bytes are forwarded", async (bytes) => {
  await using upstream = await startScriptedServer({
    request: (connection, id) => {
      const head = [...grpcHead, ...fieldsOf(bytes)];
      connection.send(...largeResponse(id, watered, [...failure, ...fieldsOf(bytes)], head));
    },
  });
  await using proxy = await startProxy(upstream.baseUrl, files);
  const response = await exchangeHttp2(proxy.address, { ...grpcCall, header: [...grpcHeader, ...fieldsOf(bytes)] });
  expect(statusOf(response)).toEqual([String(Code.FailedPrecondition), "no water"]);
  expect([largeFields(response.header), largeFields(response.trailer)]).toEqual([fieldsOf(bytes), fieldsOf(bytes)]);
  const sent = upstream.frames.filter(({ type }) => type === frameType.headers || type === frameType.continuation);
  expect(sent.reduce((sum, { payload }) => sum + payload.byteLength, 0)).toBeGreaterThan(bytes * 0.9);
});

test.each([
  { name: "a trailer", head: 0, trailer: 100_000 },
  { name: "a header", head: 100_000, trailer: 0 },
  { name: "a trailer of 900 kB", head: 0, trailer: 900_000 },
])("$name over the size limit fails only its own call", async ({ head, trailer }) => {
  const held: (() => void)[] = [];
  await using upstream = await startScriptedServer({
    request: (connection, id) => {
      if (held.length < 5) held.push(() => connection.send(...largeResponse(id, watered, success, grpcHead)));
      else {
        const fields = [...grpcHead, ...fieldsOf(head)];
        connection.send(...largeResponse(id, watered, [...failure, ...fieldsOf(trailer)], fields));
      }
    },
  });
  await using proxy = await startProxy(upstream.baseUrl, files);
  using connection = await openHttp2(proxy.address);
  const others = Array.from({ length: 5 }, () => connection.exchange(grpcCall));
  await expect.poll(() => held.length).toBe(5);
  const message = "the header fields of the response are larger than 65536 bytes, the limit of the proxy";
  expect(statusOf(await connection.exchange(grpcCall))).toEqual([String(Code.ResourceExhausted), message]);
  held.forEach((respond) => respond());
  expect((await Promise.all(others)).map((response) => statusOf(response)[0])).toEqual(["0", "0", "0", "0", "0"]);
  expect(upstream.connections).toBe(1);
});

test("limits.headerBytes limits the response headers of an upstream", async () => {
  await using upstream = await startScriptedServer({
    request: (connection, id) =>
      connection.send(...largeResponse(id, watered, [...failure, ...fieldsOf(2_000)], grpcHead)),
  });
  for (const [headerBytes, code] of [
    [1_000, Code.ResourceExhausted],
    [3_000, Code.FailedPrecondition],
  ] as const) {
    await using limited = createUpstream({ addresses: upstream.baseUrl, limits: { headerBytes } });
    await using proxy = await startProxy("", files, { upstreamOptions: { upstream: limited } });
    expect(statusOf(await exchangeHttp2(proxy.address, grpcCall))[0]).toBe(String(code));
  }
});

test("a request above the upstream's limit is not sent", async () => {
  await using upstream = await startScriptedServer({
    opening: [settingFrame(6, 8_400)],
    request: (connection, id) => connection.send(...largeResponse(id, watered, success, grpcHead)),
  });
  await using proxy = await startProxy(upstream.baseUrl, files);
  // The first call may be sent before the SETTINGS arrive.
  expect(statusOf(await exchangeHttp2(proxy.address, grpcCall))[0]).toBe("0");
  // With the fields that the proxy adds, the second is above the limit.
  const calls = [7_000, 8_000].map((bytes) => [...grpcHeader, ...fieldsOf(bytes)]);
  const statuses = [];
  for (const header of calls) statuses.push(statusOf(await exchangeHttp2(proxy.address, { ...grpcCall, header })));
  expect(statuses).toEqual([
    ["0", undefined],
    [String(Code.ResourceExhausted), "the header fields are larger than 8400 bytes, the limit of the upstream"],
  ]);
  const json: Field[] = [["content-type", "application/json"], ...fieldsOf(9_000)];
  const rest = { httpMethod: "POST", path: "/beds/1:water", header: json, body: Buffer.from("{}") };
  expect([(await exchangeHttp2(proxy.address, rest)).httpStatus, upstream.requests]).toEqual([431, 2]);
});

test("a request above 64 KiB is not sent to an upstream that announces no limit", async () => {
  // node's server, like any with nghttp2, closes the connection after a field above 64 KiB.
  const held = Promise.withResolvers<ServerHttp2Stream>();
  const server = createServer().on("stream", (stream: ServerHttp2Stream, header) => {
    stream.on("error", () => {}).respond({ "content-type": "application/grpc+proto" }, { waitForTrailers: true });
    stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
    if (header[":path"]?.endsWith("WatchReadings") === true) held.resolve(stream);
    else stream.end(watered);
  });
  onTestFinished(() => void server.close());
  await using proxy = await startProxy(await listenOnLoopback(server), files, { limits: { headerBytes: 300_000 } });
  const statusFor = async (bytes: number): Promise<number> => {
    const header = Object.entries({ "content-type": "application/json", "x-large": "v".repeat(bytes) });
    const request = { httpMethod: "POST", path: "/beds/1:water", header, body: Buffer.from("{}") };
    return (await exchangeHttp1(proxy.address, request)).httpStatus;
  };
  expect(await statusFor(1)).toBe(200);
  using caller = await openHttp2(proxy.address);
  const other = caller.exchange({ ...grpcCall, path: "/greenhouse.v1.GreenhouseService/WatchReadings" });
  const stream = await held.promise;
  expect([await statusFor(60_000), await statusFor(66_000), await statusFor(200_000)]).toEqual([200, 431, 431]);
  stream.end();
  expect(statusOf(await other)[0]).toBe("0");
});

test("a request above the proxy's limit gets status 431", async () => {
  await using proxy = await startProxy("http://127.0.0.1:1", files);
  const request = { httpMethod: "GET", path: "/sensors/1/reading" };
  const statusFor = async (bytes: number): Promise<number> =>
    (await exchangeHttp1(proxy.address, { ...request, header: fieldsOf(bytes) })).httpStatus;
  expect([await statusFor(60_000), await statusFor(70_000)]).toEqual([503, 431]);
});
