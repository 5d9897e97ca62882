import { once } from "node:events";
import { addAbortSignal, PassThrough } from "node:stream";
import { finished } from "node:stream/promises";
import { Metadata, ServerInterceptingCall, status } from "@grpc/grpc-js";
import type { ServerDuplexStream, ServerReadableStream, ServerUnaryCall, ServerWritableStream } from "@grpc/grpc-js";
import { expect, test } from "vitest";
import { waitSomeTurns, within } from "@protoport/testing";
import { allHandlers, type Callback, failing, messageOf, methods, read } from "../faulty-calls.ts";
import { loadGarden, startGarden } from "../garden.ts";
import { callGarden, type CallOutcome, type ClientCall, type Message } from "../grpc-js-client.ts";

const late = new Metadata();
late.set("x-late", "1");

const unknown = { code: status.UNKNOWN, details: "Unknown error" };

interface Case {
  readonly name: string;
  readonly method: ClientCall["method"];
  readonly handlers: object;
  readonly outcome: Partial<CallOutcome>;
  readonly faults: readonly unknown[];
}

test.each<Case>(
  // oxfmt-ignore
  [
    { name: "a handler that rejects because another stream closed early sends UNKNOWN", method: "GetTree",
      handlers: { getTree: () => finished(new PassThrough().destroy()) }, outcome: unknown,
      faults: ["Premature close"] },
    { name: "a client stream that its handler destroys gets the handler's response", method: "AddTrees",
      handlers: { addTrees: (call: ServerReadableStream<Message, Message>, callback: Callback) => {
        call.destroy();
        callback(null, { treeCount: 1 });
      } }, outcome: { code: status.OK, messages: [{ treeCount: 1 }] }, faults: [] },
    { name: "a handler can respond after its for await loop stopped early", method: "AddTrees",
      handlers: { addTrees: async (call: ServerReadableStream<Message, Message>, callback: Callback) => {
        for await (const _ of call) break;
        await waitSomeTurns();
        callback(null, { treeCount: 1 });
      } }, outcome: { code: status.OK, messages: [{ treeCount: 1 }] }, faults: [] },
    { name: "a client stream that an AbortSignal of its handler destroys sends UNKNOWN", method: "AddTrees",
      handlers: { addTrees: (call: ServerReadableStream<Message, Message>) => addAbortSignal(AbortSignal.abort(),
        call) }, outcome: unknown, faults: ["The operation was aborted"] },
    { name: "a client stream with an error like that of a stopped loop sends UNKNOWN", method: "AddTrees",
      handlers: { addTrees: (call: ServerReadableStream<Message, Message>) => call.emit("error",
        Object.assign(new Error("stopped"), { code: "ABORT_ERR" })) }, outcome: unknown, faults: ["stopped"] },
    { name: "a bidirectional stream whose for await loop stopped early sends UNKNOWN", method: "TradeTrees",
      handlers: { tradeTrees: async (call: ServerDuplexStream<Message, Message>) => {
        for await (const _ of call) break;
      } }, outcome: unknown, faults: ["The operation was aborted"] },
    { name: "an exception in a for await loop is reported once", method: "TradeTrees",
      handlers: { tradeTrees: async (call: ServerDuplexStream<Message, Message>) => {
        for await (const _ of call) failing();
      } }, outcome: unknown, faults: ["index out of range"] },
    { name: "a server stream that fails with the code OK sends UNKNOWN", method: "ListTrees",
      handlers: { listTrees: (call: ServerWritableStream<Message, Message>) => call.emit("error",
        Object.assign(new Error("secret"), { code: status.OK })) }, outcome: unknown, faults: ["secret"] },
  ],
)("$name", async ({ method, handlers, outcome, faults }) => {
  await using garden = await startGarden({ ...handlers });
  const options = { deadline: Date.now() + 5000 };
  expect(await callGarden(garden.address.port, { method, options })).toMatchObject(outcome);
  expect(garden.faults.map(({ error }) => messageOf(error))).toEqual(faults);
});

test.each(methods)("an error of %s after a cancellation is not reported", async (method) => {
  const { promise: started, resolve: start } = Promise.withResolvers<void>();
  const { promise: thrown, resolve: throwing } = Promise.withResolvers<void>();
  const handlers = allHandlers(async (call) => {
    start();
    // node:events' `once` cannot be used, because it rejects if the call emits "error" first.
    await new Promise((resolve) => call.once("cancelled", resolve));
    throwing();
    failing();
  });
  await using garden = await startGarden(handlers);
  const onStart = (cancel: () => void): void => void started.then(cancel);
  const { code } = await within(callGarden(garden.address.port, { method, onStart }), "the end of the call");
  expect(code).toBe(status.CANCELLED);
  await within(thrown, "the handler's error");
  await waitSomeTurns();
  expect(garden.faults).toEqual([]);
});

const respondWith = (treeId: number) => (_: unknown, callback: Callback) => callback(null, { treeId });

test("a handler with the definition's name precedes one in lower case", async () => {
  const handlers = { getTree: respondWith(1), GetTree: respondWith(2) };
  await using garden = await startGarden(handlers);
  const { messages } = await callGarden(garden.address.port, { method: "GetTree" });
  expect(messages).toMatchObject([{ treeId: "2" }]);
});

test.each([
  [
    "after an error",
    "GetTree",
    status.NOT_FOUND,
    (call: ServerUnaryCall<Message, Message>, callback: Callback) => {
      callback({ code: status.NOT_FOUND });
      call.sendMetadata(late);
    },
  ],
  [
    "after a stream's first message",
    "ListTrees",
    status.OK,
    (call: ServerWritableStream<Message, Message>) => {
      call.write({});
      call.sendMetadata(late);
      call.end();
    },
  ],
] as const)("metadata that a handler sends %s is ignored", async (_name, method, code, handler) => {
  await using garden = await startGarden({ getTree: handler, listTrees: handler });
  const outcome = await callGarden(garden.address.port, { method });
  expect(outcome.code).toBe(code);
  expect({ ...outcome.header, ...outcome.trailer }).not.toHaveProperty("x-late");
});

test.each(methods)("only the first request of %s that cannot be read is reported", async (method) => {
  const definition = loadGarden();
  const unreadable = Object.assign({}, definition[method], { requestDeserialize: failing });
  await using garden = await startGarden(allHandlers(read), {}, {}, { ...definition, [method]: unreadable });
  const want = { code: status.INVALID_ARGUMENT, details: "the request does not match its definition" };
  for (const _ of [1, 2]) expect(await callGarden(garden.address.port, { method })).toMatchObject(want);
  expect(garden.faults.map(({ error, what }) => [messageOf(error), what])).toEqual([
    ["index out of range", `requestDeserialize of /garden.v1.Garden/${method} failed`],
  ]);
});

class EagerCall extends ServerInterceptingCall {
  override startRead(): void {
    super.startRead();
    super.startRead();
  }
}

test("a message that an interceptor requests twice is read once", async () => {
  const handlers = {
    addTrees: async (call: ServerReadableStream<Message, Message>, callback: Callback) => {
      await once(call, "readable");
      await waitSomeTurns();
      callback(null, { treeCount: call.readableLength });
    },
  };
  await using garden = await startGarden(handlers, { interceptors: [(_, call) => new EagerCall(call)] });
  const outcome = await callGarden(garden.address.port, { method: "AddTrees", requests: [{}, {}, {}] });
  expect(outcome).toMatchObject({ code: status.OK, messages: [{ treeCount: 1 }] });
});
