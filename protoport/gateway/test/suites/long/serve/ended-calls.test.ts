import { getEventListeners } from "node:events";
import { setImmediate as nextTurn } from "node:timers/promises";
import { gunzipSync, gzipSync } from "node:zlib";
import { Code, ConnectError, type Interceptor } from "@connectrpc/connect";
import type { Compression } from "@connectrpc/connect/protocol";
import { expect, test } from "vitest";
import type { StreamCompression } from "../../../../src/protocols/index.ts";
import { brotli } from "../../../../src/protocols/compression/index.ts";
// oxfmt-ignore
import { callings, encodeEnvelope, exchangeHttp1, type Field, fieldValue, greenhouseClient, type HttpRequest, openHttp1,
  readOutcome, reasonOf, rpcRequest, startGreenhouse, startWatched, waterBedProcedure, wireFormats, within
} from "@protoport/testing";
import { countRefTimers } from "../../../../../testing/src/ref-timers.ts";

// The gateway does no more work for a call that has ended.

const format = wireFormats["connect-json"];
const call = (...more: readonly Field[]): HttpRequest => rpcRequest(format, Buffer.from("{}"), more, waterBedProcedure);

/** A call with a compressed message, and a header field with a 30 ms timeout. */
type Packed = { readonly name: string; readonly request: HttpRequest; readonly body: Buffer; readonly late: Field };

test("a call reaches neither interceptor nor handler if its deadline passes before it arrives", async () => {
  await using greenhouse = await startWatched({});
  const response = await exchangeHttp1(greenhouse.address, call(["connect-timeout-ms", "0"]));
  expect(readOutcome(format, response).code).toBe(Code.DeadlineExceeded);
  // A 0 ms timer would have fired by then.
  await new Promise((resolve) => setTimeout(resolve, 3));
  expect(greenhouse.ran).toEqual([]);
});

test("a call reaches neither interceptor nor handler if its deadline passes while its message is decompressed", async () => {
  const responded = Promise.withResolvers<void>();
  const slow: Compression = {
    name: "gzip",
    compress: async (bytes) => new Uint8Array(gzipSync(bytes)),
    decompress: async (bytes) => (await responded.promise, new Uint8Array(gunzipSync(bytes))),
  };
  await using greenhouse = await startWatched({ acceptCompression: [slow] });
  const request = { ...call(["connect-timeout-ms", "30"], ["content-encoding", "gzip"]), body: gzipSync("{}") };
  expect(readOutcome(format, await exchangeHttp1(greenhouse.address, request)).code).toBe(Code.DeadlineExceeded);
  responded.resolve();
  await nextTurn();
  expect(greenhouse.ran).toEqual([]);
});

test.each(
  // oxfmt-ignore
  [
    { name: "Connect", request: call(["content-encoding", "gzip"]), body: gzipSync("{}"),
      late: ["connect-timeout-ms", "30"] },
    { name: "gRPC-Web",
      request: rpcRequest(wireFormats["grpc-web"], Buffer.of(), [["grpc-encoding", "gzip"]], waterBedProcedure),
      body: encodeEnvelope(1, gzipSync("")), late: ["grpc-timeout", "30m"] },
    { name: "REST", request: { ...call(["content-encoding", "gzip"]), path: "/beds/7:water" }, body: gzipSync("{}"),
      late: ["x-server-timeout", "0.03"] },
  ] satisfies readonly Packed[],
)("a call over $name is not decompressed if its deadline passes in the queue", async ({ request, body, late }) => {
  const responded = Promise.withResolvers<void>();
  const tenUnpacked = Promise.withResolvers<void>();
  let unpacked = 0;
  // Only built-in compressions are queued.
  const slow: Compression = {
    ...brotli,
    name: "gzip",
    decompress: async (bytes) => {
      unpacked += 1;
      if (unpacked === 10) tenUnpacked.resolve();
      await responded.promise;
      return new Uint8Array(gunzipSync(bytes));
    },
  };
  await using greenhouse = await startWatched({ acceptCompression: [slow] });
  const ask = (...more: readonly Field[]) =>
    exchangeHttp1(greenhouse.address, { ...request, header: [...request.header, ...more], body });
  const others = Array.from({ length: 10 }, () => ask());
  await within(tenUnpacked.promise, "ten messages");
  await ask(late);
  expect(greenhouse.completedRequests).toMatchObject([{ error: { code: Code.DeadlineExceeded } }]);
  responded.resolve();
  await Promise.all(others);
  expect(unpacked).toBe(10);
});

test("a call gets DEADLINE_EXCEEDED if its deadline passes while its response is compressed", async () => {
  const responded = Promise.withResolvers<void>();
  const compress: Compression["compress"] = async (bytes) => (await responded.promise, await unchanged(bytes));
  const slow: Compression = { name: "gzip", compress, decompress: unchanged };
  await using greenhouse = await startWatched({ acceptCompression: [slow], compressMinBytes: 0 });
  // The request has no body that could arrive later, so the response is compressed in the same turn.
  const codings = { "content-type": "application/proto", "accept-encoding": "gzip" };
  const header: Field[] = Object.entries({ ...codings, "connect-timeout-ms": "30" });
  const response = await exchangeHttp1(greenhouse.address, { httpMethod: "POST", path: waterBedProcedure, header });
  expect(readOutcome(format, response).code).toBe(Code.DeadlineExceeded);
  responded.resolve();
  expect(await greenhouse.completed(1)).toMatchObject({ httpStatus: 504, error: { code: Code.DeadlineExceeded } });
  // The call is not reported again when the compression finishes.
  await nextTurn();
  expect(greenhouse.completedRequests).toHaveLength(1);
});

test("a call does not read its body if its deadline passes while the request gate runs", async () => {
  const passed = Promise.withResolvers<void>();
  await using greenhouse = await startWatched({
    requestGate: async ({ signal }) => {
      await reasonOf(signal);
      passed.resolve();
    },
  });
  using connection = await openHttp1(greenhouse.address);
  const header = Object.entries({ "connect-timeout-ms": "30", expect: "100-continue", "content-length": "2" });
  connection.request({ ...call(...header), body: Buffer.of() });
  const { interim, ...response } = await connection.readResponse();
  expect(readOutcome(format, response).code).toBe(Code.DeadlineExceeded);
  await within(passed.promise, "the gate");
  expect([interim, String(await connection.readToEnd()), greenhouse.ran]).toEqual([[], "", []]);
});

test("a stream that an interceptor returns after its deadline is closed", async () => {
  const ended = Promise.withResolvers<void>();
  const message: AsyncIterable<never> = {
    [Symbol.asyncIterator]: () => ({
      next: () => Promise.reject(new Error("asked")),
      return: async () => (ended.resolve(), { done: true, value: undefined }),
    }),
  };
  const slow: Interceptor = () => async (request) => {
    if (!request.stream) throw new Error("no stream");
    const { service, method, signal } = request;
    await reasonOf(signal);
    return { stream: true, service, method, header: new Headers(), trailer: new Headers(), message };
  };
  await using greenhouse = await startGreenhouse({}, { interceptors: [slow] });
  const header: Field[] = Object.entries({ "content-type": "application/connect+json", "connect-timeout-ms": "30" });
  const path = "/greenhouse.v1.GreenhouseService/RecordReadings";
  const response = await exchangeHttp1(greenhouse.address, { httpMethod: "POST", path, header, body: Buffer.of() });
  expect(String(response.body)).toContain("deadline_exceeded");
  await within(ended.promise, "the end of the stream");
});

const openEncoder = () => ({ write: unchanged, end: unchanged, close: () => undefined });
const unchanging = { name: "gzip", compress: unchanged, decompress: unchanged, openEncoder };

test("a stream past its deadline releases its decoder", async () => {
  const closed = Promise.withResolvers<void>();
  const named: StreamCompression = {
    ...unchanging,
    decodePieces: (pieces, _, ended) => (ended.addEventListener("abort", () => closed.resolve()), pieces),
  };
  const pattern = { case: "post", value: "/readings" } as const;
  const handlers: Parameters<typeof startGreenhouse>[0] = {
    recordReadings: async (readings) => {
      await readings[Symbol.asyncIterator]().next();
      return await new Promise(() => {});
    },
  };
  await using greenhouse = await startGreenhouse(handlers, {
    acceptCompression: [named],
    rest: { rules: [{ selector: "greenhouse.v1.GreenhouseService.RecordReadings", pattern, body: "*" }] },
  });
  const content = { "content-type": "application/x-ndjson", "content-encoding": "gzip" };
  const header: Field[] = Object.entries({ ...content, "x-server-timeout": "0.1" });
  const body = Buffer.from('{"sensor":"one"}\n{"sensor":"two"}\n');
  const response = await exchangeHttp1(greenhouse.address, { httpMethod: "POST", path: "/readings", header, body });
  expect(response.httpStatus).toBe(504);
  await within(closed.promise, "the end of the decoder");
});

test("a call that an interceptor has aborted does not reach its handler", async () => {
  const reason = new ConnectError("no more", Code.Aborted);
  await using greenhouse = await startWatched({
    interceptors: [(next) => (request) => next({ ...request, signal: AbortSignal.abort(reason) })],
  });
  const response = await exchangeHttp1(greenhouse.address, call());
  expect(readOutcome(format, response)).toMatchObject({ code: Code.Aborted, message: "no more" });
  expect(greenhouse.ran).toEqual(["interceptor"]);
});

test.each(callings)("by $name, ended calls leave neither listeners nor timers", async (calling) => {
  const shutdown = new AbortController();
  const handlers = {
    waterBed: () => ({}),
    async *watchReadings() {
      yield { sensor: "one" };
    },
  };
  await using greenhouse = await startGreenhouse(handlers, { shutdownSignal: shutdown.signal }, calling.listen);
  const client = greenhouseClient(calling, greenhouse.address);
  // The timeouts are an hour, and a time above the maximum of a Node.js timer.
  const deadlines = [
    { headers: { "connect-timeout-ms": "3600000", "grpc-timeout": "1H" } },
    { headers: { "connect-timeout-ms": "9999999999", "grpc-timeout": "99999999H" } },
  ];
  const callAll = async (): Promise<void> => {
    for (const options of deadlines) {
      await client.waterBed({}, options);
      for await (const { sensor } of client.watchReadings({}, options)) expect(sensor).toBe("one");
    }
  };
  await callAll();
  const before = countRefTimers();
  const rounds = 10;
  for (let round = 0; round < rounds; round++) await callAll();
  await greenhouse.completed((rounds + 1) * 4);
  expect(countRefTimers() - before).toBeLessThan(rounds);
  expect(getEventListeners(shutdown.signal, "abort")).toEqual([]);
});

function refuse(): never {
  throw new ConnectError("no water", Code.NotFound);
}

test("errors that are compressed leave no timers", async () => {
  await using greenhouse = await startGreenhouse({ waterBed: refuse }, { compressMinBytes: 0 });
  const before = countRefTimers();
  const calls = Array.from({ length: 10 }, async () => {
    const { header } = await exchangeHttp1(greenhouse.address, call(["accept-encoding", "gzip"]));
    expect(fieldValue(header, "content-encoding")).toBe("gzip");
  });
  await Promise.all(calls);
  await greenhouse.completed(calls.length);
  expect(countRefTimers() - before).toBeLessThan(calls.length);
});

async function unchanged(bytes: Uint8Array): Promise<Uint8Array<ArrayBuffer>> {
  return new Uint8Array(bytes);
}
