import { once } from "node:events";
import { writeFileSync } from "node:fs";
import type { ClientHttp2Stream } from "node:http2";
import { join } from "node:path";
import { create, toBinary } from "@bufbuild/protobuf";
import { beforeAll, expect, test } from "vitest";
import { type Field, fieldValue, openHttp2, readHttp2Response } from "@protoport/testing/http";
import { buildLimitMs, createTempFolder, residentBytes, within } from "@protoport/testing/process";
import { descriptorSetOf, envelope, startProxyProcess } from "@protoport/testing/proxy";
import type { GrpcProgram } from "../../../../testing/src/gateway/grpc-programs.ts";
import { buildGo, echoFiles, startGrpcProgram } from "../../../../testing/src/gateway/grpc-programs.ts";
import { ItemSchema } from "../../../../testing/src/gen/transcoding/v1/echo_pb.ts";

const header: readonly Field[] = Object.entries({ "content-type": "application/grpc+proto", te: "trailers" });
const relay = { httpMethod: "POST", path: "/transcoding.v1.StreamService/Relay", header };
const item = envelope(toBinary(ItemSchema, create(ItemSchema, { text: "item" })));

const connections = 40;
const streamsPerConnection = 250;
const streams = connections * streamsPerConnection;

/** Maximum memory that the proxy uses for an open stream, including garbage. 32 KiB is twice what was measured. */
const maxStreamBytes = 32 * 1024;

let program: GrpcProgram;
beforeAll(async () => {
  program = await buildGo("echo");
}, buildLimitMs);

test("10,000 concurrent streams carry a message in both directions", async () => {
  await using opened = new AsyncDisposableStack();
  const server = opened.use(await startGrpcProgram(program));
  const descriptors = join(opened.use(createTempFolder()).path, "echo.binpb");
  writeFileSync(descriptors, descriptorSetOf(...echoFiles));
  const args = ["--upstream", server.address, "--descriptors", descriptors, "--port", "0"];
  const proxy = opened.use(await startProxyProcess(args));
  const { pid } = proxy.command.process;
  const before = residentBytes(pid);
  const calls: ClientHttp2Stream[] = [];
  for (let i = 0; i < connections; i++) {
    const connection = opened.use(await openHttp2({ address: "127.0.0.1", port: proxy.port }));
    for (let j = 0; j < streamsPerConnection; j++) calls.push(connection.open(relay, { endStream: false }));
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
