import { Readable } from "node:stream";
import { create, toBinary } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createUpstream } from "../../../src/upstreams/index.ts";
import { startRelay } from "../../../../testing/src/http/relay.ts";
// oxfmt-ignore
import { type GrpcProgram, type GrpcServerProcess, buildGo, echoFiles, startGrpcProgram
} from "../../../../testing/src/gateway/grpc-programs.ts";
import { descriptorSetOf, envelope, startProxy, startProxyProcess } from "@protoport/testing/proxy";
import { CountRequestSchema, ItemSchema } from "../../../../testing/src/gen/transcoding/v1/echo_pb.ts";
import { type Field, fieldValue, buildLimitMs, createTempFolder, residentBytes, within } from "@protoport/testing";
import { type HttpRequest, type Http2Connection, openHttp2, readHttp2Response } from "@protoport/testing/http";
import { once } from "node:events";
import type { ClientHttp2Stream } from "node:http2";

const header: readonly Field[] = Object.entries({ "content-type": "application/grpc+proto", te: "trailers" });
const service = "/transcoding.v1.StreamService";
const count = (items: number): HttpRequest => {
  const body = envelope(toBinary(CountRequestSchema, create(CountRequestSchema, { count: items })));
  return { httpMethod: "POST", path: `${service}/Count`, header, body };
};
const relayed: HttpRequest = { httpMethod: "POST", path: `${service}/Relay`, header };
const item = envelope(toBinary(ItemSchema, create(ItemSchema, { text: "item" })));
const opened = new AsyncDisposableStack();
let program: GrpcProgram;
let server: GrpcServerProcess;
beforeAll(async () => {
  program = await buildGo("echo");
  server = opened.use(await startGrpcProgram(program));
}, buildLimitMs);
afterAll(() => opened.disposeAsync());

/** Makes 50 concurrent calls, and returns their different statuses. */
const callAll = async (connection: Http2Connection): Promise<readonly (string | undefined)[]> => {
  const calls = Array.from({ length: 50 }, () => statusOf(connection.exchange(count(1))));
  return [...new Set(await Promise.all(calls))];
};

const statusOf = async (call: ReturnType<typeof readHttp2Response>): Promise<string | undefined> => {
  const response = await within(call, "a response");
  return fieldValue([...response.header, ...response.trailer], "grpc-status");
};

test("calls go to the other server when one host becomes unreachable", async () => {
  await using lost = await startGrpcProgram(program);
  await using relay = await startRelay({ address: "127.0.0.1", port: lost.port });
  await using upstream = createUpstream({ addresses: [relay.baseUrl, server.address], keepaliveMs: 300 });
  await using proxy = await startProxy("", echoFiles, { upstreamOptions: { upstream } });
  using connection = await openHttp2(proxy.address);
  // Continues until both servers have a connection.
  await expect.poll(async () => (await callAll(connection)) && upstream.load.connections).toBe(2);
  const calls = Array.from({ length: 20 }, () => connection.open(relayed, { endStream: false }));
  const ends = calls.map((call) => statusOf(readHttp2Response(call)));
  await expect.poll(() => upstream.load.calls).toBe(20);
  relay.stall();
  // One interval until the PING, and one for its acknowledgement.
  await expect.poll(() => upstream.load.connections, { timeout: 2_000 }).toBe(1);
  const { calls: left } = upstream.load;
  expect(await callAll(connection)).toEqual(["0"]);
  for (const call of calls) call.end(item);
  const statuses = await Promise.all(ends);
  expect(statuses.filter((status) => status === "0")).toHaveLength(left);
  expect(statuses.filter((status) => status === String(Code.Unavailable))).toHaveLength(20 - left);
  expect(left).toBeGreaterThan(0);
  expect(left).toBeLessThan(20);
});

const mebibyte = 2 ** 20;

test.each([
  { name: "callers that do not read", request: relayed },
  { name: "servers that do not read", request: { ...relayed, header: [...header, ["x-never-read", "1"] as const] } },
])("50 streams with $name neither stall other calls nor exhaust memory", async ({ request }) => {
  using folder = createTempFolder();
  const descriptors = folder.write("echo.binpb", descriptorSetOf(...echoFiles));
  const args = ["--upstream", server.address, "--descriptors", descriptors, "--port", "0"];
  await using proxy = await startProxyProcess(args);
  using connection = await openHttp2({ address: "127.0.0.1", port: proxy.port });
  // Responses that are not read must not exhaust the connection's window.
  connection.session.setLocalWindowSize(2 ** 30);
  for (let i = 0; i < 20; i++) await callAll(connection);
  const { pid } = proxy.command.process;
  const before = residentBytes(pid);
  const large = envelope(toBinary(ItemSchema, create(ItemSchema, { text: "a".repeat(16 * 1024) })));
  for (let i = 0; i < 50; i++) {
    const call = connection.open(request, { endStream: false });
    // The stream is reset when the test ends.
    call.on("error", () => undefined);
    Readable.from(Array.from({ length: 1_024 }, () => large)).pipe(call);
  }
  for (let i = 0; i < 20; i++) expect(await callAll(connection)).toEqual(["0"]);
  // Stream windows need most memory, 256 KiB in each direction. Without windows, 800 MiB would be sent.
  expect(residentBytes(pid) - before).toBeLessThan(160 * mebibyte);
});

const connections = 40;
const streamsPerConnection = 250;
const streams = connections * streamsPerConnection;
/** Maximum memory that the proxy uses for an open stream, including garbage. 32 KiB is twice what was measured. */
const maxStreamBytes = 32 * 1024;

test("10,000 concurrent streams carry a message in both directions", async () => {
  await using stack = new AsyncDisposableStack();
  const echo = stack.use(await startGrpcProgram(program));
  const descriptors = stack.use(createTempFolder()).write("echo.binpb", descriptorSetOf(...echoFiles));
  const args = ["--upstream", echo.address, "--descriptors", descriptors, "--port", "0"];
  const proxy = stack.use(await startProxyProcess(args));
  const { pid } = proxy.command.process;
  const before = residentBytes(pid);
  const calls: ClientHttp2Stream[] = [];
  for (let i = 0; i < connections; i++) {
    const connection = stack.use(await openHttp2({ address: "127.0.0.1", port: proxy.port }));
    for (let j = 0; j < streamsPerConnection; j++) calls.push(connection.open(relayed, { endStream: false }));
  }
  const ends = calls.map((call) => readHttp2Response(call));
  const responded = calls.map((call) => once(call, "data"));
  for (const call of calls) call.write(item);
  await within(Promise.all(responded), "a message of each stream");
  const streamBytes = (residentBytes(pid) - before) / streams;
  for (const call of calls) call.end();
  const statuses = await within(Promise.all(ends), "the end of all streams");
  expect(new Set(statuses.map(({ trailer }) => fieldValue(trailer, "grpc-status")))).toEqual(new Set(["0"]));
  expect(statuses.filter(({ body }) => body.equals(item))).toHaveLength(streams);
  expect(streamBytes).toBeLessThan(maxStreamBytes);
});
