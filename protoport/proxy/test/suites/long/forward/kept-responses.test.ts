import type { Message } from "@bufbuild/protobuf";
import { createClient, type Interceptor, type StreamResponse, type UnaryResponse } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import { describe, expect, test } from "vitest";
import { GreenhouseService, startGreenhouse, startProxy } from "@protoport/testing/proxy";
import { collect } from "../../../../../testing/src/collect.ts";

// Large enough that the engine frees a response's memory after sending the response.
const first = "oak ".repeat(25_000);
const second = "elm ".repeat(25_000);

// Without compression, messages are forwarded in the memory in which they arrived.
const uncompressed = { acceptCompression: [] };

// oxfmt-ignore
const protocols = [
  { name: "gRPC", transport: (baseUrl: string) => createGrpcTransport({ baseUrl, ...uncompressed }) },
  { name: "gRPC-Web over HTTP/1.1",
    transport: (baseUrl: string) => createGrpcWebTransport({ baseUrl, httpVersion: "1.1", ...uncompressed }) },
  { name: "Connect with JSON",
    transport: (baseUrl: string) => createConnectTransport({ baseUrl, httpVersion: "2", useBinaryFormat: false,
      ...uncompressed }) },
];

/** Starts a proxy with interceptors in front of a greenhouse that echoes notes and sensors. */
async function startEcho(...interceptors: readonly Interceptor[]) {
  const upstream = await startGreenhouse({
    waterBed: ({ note }) => ({ note }),
    async *watchReadings({ sensor, count }) {
      for (let at = 0; at < count; at += 1) yield { sensor, degreesCelsius: at };
    },
    async *controlClimate(readings) {
      for await (const { sensor } of readings) yield { sensor };
    },
  });
  const baseUrl = `http://127.0.0.1:${upstream.address.port}`;
  const proxy = await startProxy(baseUrl, [GreenhouseService.file], { interceptors: [...interceptors] });
  return {
    clientOf: ({ transport }: (typeof protocols)[number]) => createClient(GreenhouseService, transport(proxy.baseUrl)),
    async [Symbol.asyncDispose]() {
      await proxy[Symbol.asyncDispose]();
      await upstream[Symbol.asyncDispose]();
    },
  };
}

describe.each(protocols)("a response over $name", (protocol) => {
  test("keeps its message after the call if an interceptor retains the response", async () => {
    const kept: UnaryResponse[] = [];
    await using echo = await startEcho((next) => async (request) => {
      const response = await next(request);
      if (!response.stream) kept.push(response);
      return response;
    });
    const client = echo.clientOf(protocol);
    for (const note of [first, second]) expect((await client.waterBed({ note })).note).toBe(note);
    expect(kept.map(({ message }) => message)).toMatchObject([{ note: first }, { note: second }]);
  });

  test("keeps stream messages after the call if an interceptor retains them", async () => {
    const kept: Message[] = [];
    await using echo = await startEcho((next) => async (request) => {
      const response = await next(request);
      return response.stream ? { ...response, message: keepAll(response, kept) } : response;
    });
    const client = echo.clientOf(protocol);
    for (const sensor of [first, second]) {
      const readings = await collect(client.watchReadings({ sensor, count: 2 }));
      expect(readings).toMatchObject([{ sensor }, { sensor }]);
    }
    expect(kept).toMatchObject([first, first, second, second].map((sensor) => ({ sensor })));
  });

  test.each(protocols)("is unchanged if an interceptor returns it to a later $name call", async (later) => {
    let cached: UnaryResponse | undefined;
    await using echo = await startEcho((next) => async (request) => {
      if (cached !== undefined) return cached;
      const response = await next(request);
      if (!response.stream) cached = response;
      return response;
    });
    const notes = [await echo.clientOf(protocol).waterBed({ note: first })];
    for (const note of [second, second]) notes.push(await echo.clientOf(later).waterBed({ note }, { timeoutMs: 5000 }));
    expect(notes.map(({ note }) => note === first)).toEqual([true, true, true]);
  });
});

async function* keepAll({ message }: StreamResponse, kept: Message[]): AsyncGenerator<Message> {
  for await (const item of message) {
    kept.push(item);
    yield item;
  }
}
