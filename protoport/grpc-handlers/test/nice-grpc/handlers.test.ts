import { Duplex } from "node:stream";
import { setImmediate } from "node:timers/promises";
import type { ConnectRouter } from "@connectrpc/connect";
import { Metadata, status } from "@grpc/grpc-js";
import { expect, test } from "vitest";
import { createTestGateway, listenForTests, within } from "@protoport/testing";
import { addNiceGrpcService } from "../../src/nice-grpc.ts";
import { toGrpcJsHandler } from "../../src/nice-grpc/index.ts";
import { loadGarden, startGarden } from "../garden.ts";
import { callGarden } from "../grpc-js-client.ts";

/** A call whose client reads nothing. */
class UnreadCall extends Duplex {
  readonly metadata = new Metadata();
  constructor() {
    super({ objectMode: true, writableHighWaterMark: 1 });
  }
  getPeer(): string {
    return "127.0.0.1:1";
  }
  sendMetadata(): void {}
  override _write(): void {}
}

test("a generator that waits for its reader closes when the call closes", async () => {
  let isClosed = false;
  const handler = toGrpcJsHandler({ requestStream: false, responseStream: true }, async function* () {
    try {
      for (;;) yield {};
    } finally {
      isClosed = true;
    }
  });
  const call = new UnreadCall();
  Reflect.apply(handler, undefined, [call]);
  await setImmediate();
  expect(call.writableNeedDrain).toBe(true);
  call.destroy();
  await setImmediate();
  expect(isClosed).toBe(true);
});

test("a generator's signal aborts when its message cannot be serialized", async () => {
  const aborted = Promise.withResolvers<void>();
  const kind = { requestStream: false, responseStream: true };
  const listTrees = toGrpcJsHandler(kind, async function* (_request, { signal }) {
    signal.addEventListener("abort", () => aborted.resolve());
    yield { leavesByName: { oak: 7 } };
    await aborted.promise;
  });
  await using garden = await startGarden({ listTrees });
  const { code } = await callGarden(garden.address.port, { method: "ListTrees" });
  expect(code).toBe(status.INTERNAL);
  await within(aborted.promise, "the abort");
});

const gone = new DOMException("gone", "AbortError");
test.each([
  ["a generator that ends without a message", "ListTrees", undefined, status.OK],
  ["a generator that throws before its first message", "ListTrees", gone, status.CANCELLED],
  ["a unary handler that throws", "GetTree", gone, status.CANCELLED],
] as const)("%s sends its header", async (_name, method, error, code) => {
  const responseStream = method === "ListTrees";
  const handler = toGrpcJsHandler({ requestStream: false, responseStream }, (_request, { header }) => {
    const responses = (async function* () {
      header.set("x-head", "1");
      if (error !== undefined) throw error;
      yield* [];
    })();
    return responseStream ? responses : responses.next();
  });
  await using garden = await startGarden({ listTrees: handler, getTree: handler });
  const outcome = await callGarden(garden.address.port, { method });
  expect(outcome).toMatchObject({ code, messages: [], header: { "x-head": ["1"] } });
});

test("a header field that is set after sendHeader is not sent", async () => {
  const kind = { requestStream: false, responseStream: true };
  const listTrees = toGrpcJsHandler(kind, async function* (_request, { header, sendHeader }) {
    sendHeader();
    header.set("x-late", "1");
    yield {};
  });
  await using garden = await startGarden({ listTrees });
  const { code, header } = await callGarden(garden.address.port, { method: "ListTrees" });
  expect(code).toBe(status.OK);
  expect(header).not.toHaveProperty("x-late");
});

test("addNiceGrpcService has the options of addGrpcJsService", async () => {
  const handlers = {
    getTree: async (): Promise<never> => {
      throw new Error("frozen");
    },
  };
  const options = { exposeErrorMessages: true };
  const routes = (router: ConnectRouter): void => void addNiceGrpcService(router, loadGarden(), handlers, options);
  await using server = await listenForTests(createTestGateway({ routes, onFault: () => {} }));
  const { code, details } = await callGarden(server.address.port, { method: "GetTree" });
  expect({ code, details }).toEqual({ code: status.UNKNOWN, details: "frozen" });
});
