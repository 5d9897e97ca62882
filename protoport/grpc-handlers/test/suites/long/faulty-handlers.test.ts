import { once } from "node:events";
import type { Interceptor } from "@connectrpc/connect";
import { Metadata, ServerInterceptingCall, type ServerInterceptor, status } from "@grpc/grpc-js";
import type { ServerDuplexStream, ServerUnaryCall, ServerWritableStream } from "@grpc/grpc-js";
import { expect, test } from "vitest";
import { allHandlers, type Callback, callWithDeadline, failing, messageOf, methods, read } from "../../faulty-calls.ts";
import { loadGarden, startGarden } from "../../garden.ts";
import { callGarden, type CallOutcome, type ClientCall, type Message } from "../../grpc-js-client.ts";

// Handlers and interceptors that break grpc-js's rules. They neither exit the process nor keep a call open.

type Writable = ServerWritableStream<Message, Message>;
const say = (speciesName: string): Message => ({ speciesName });
const said = (speciesName: string): unknown => [expect.objectContaining({ speciesName })];
const messagesOf = (call: AsyncIterable<Message>): AsyncIterable<Message> => call;
const unary = (handler: (callback: Callback, call: ServerUnaryCall<Message, Message>) => unknown): object => ({
  getTree: (call: ServerUnaryCall<Message, Message>, callback: Callback) => handler(callback, call),
});
/** A value that a JavaScript program may pass. */
// oxlint-disable-next-line typescript/no-unsafe-type-assertion
const untyped = (value: unknown): never => value as never;
const unknown = { code: status.UNKNOWN, details: "Unknown error" };
const internal = { code: status.INTERNAL, details: "Error serializing response" };
const [ok, failed] = [{ code: status.OK }, { code: status.INTERNAL }];
const notFound = { code: status.NOT_FOUND, details: "no such tree" };

interface Case {
  readonly name: string;
  readonly handlers: object;
  readonly method?: ClientCall["method"];
  readonly keepsOpen?: boolean;
  readonly outcome: Partial<Record<keyof CallOutcome, unknown>>;
  readonly faults?: readonly string[];
}

// oxfmt-ignore
const cases: readonly Case[] = [
  { name: "a second call of the callback has no effect", handlers: unary((callback) => {
      callback(null, say("first"));
      callback(null, say("second"));
      callback(notFound);
    }), outcome: { code: status.OK, messages: said("first") } },
  { name: "a call of the callback after an error has no effect", handlers: unary((callback) => {
      callback(notFound);
      callback(null, say("late"));
    }), outcome: { ...notFound, messages: [] } },
  { name: "an exception after the callback is reported to onFault", handlers: unary((callback) => {
      callback(null, say("first"));
      throw new Error("late");
    }), outcome: { code: status.OK, messages: said("first") }, faults: ["late"] },
  { name: "a promise that rejects after the callback is reported to onFault", handlers: unary(async (callback) => {
      callback(null, say("first"));
      await Promise.resolve();
      throw new Error("late");
    }), outcome: { code: status.OK, messages: said("first") }, faults: ["late"] },
  { name: "an error event with a status after the stream's end is not reported", method: "ListTrees", handlers: { listTrees: (call: Writable) => {
        call.write(say("first"));
        call.end();
        call.on("close", () => call.emit("error", notFound));
      },
    }, outcome: { code: status.OK, messages: said("first") } },
  { name: "a for-await loop over the requests ends when the handler ends the call", method: "TradeTrees", handlers: { tradeTrees: async (call: ServerDuplexStream<Message, Message>) => {
        for await (const _ of messagesOf(call)) call.end();
      },
    }, keepsOpen: true, outcome: { code: status.OK } },
  { name: "a rejected promise is sent as UNKNOWN", handlers: unary(() => Promise.reject(new Error("secret"))),
    outcome: unknown, faults: ["secret"] },
  { name: "a string passed as the error is sent as UNKNOWN", handlers: unary((callback) => callback(untyped("secret"))),
    outcome: unknown, faults: ["secret"] },
  { name: "an error with an invalid code is sent as UNKNOWN",
    handlers: unary((callback) => callback({ code: untyped(99), details: "secret" })), outcome: unknown,
    faults: [expect.anything()] },
  { name: "an error with the code OK is sent as UNKNOWN",
    handlers: unary((callback) => callback({ code: status.OK, details: "secret" })), outcome: unknown,
    faults: [expect.anything()] },
  { name: "an error with the code ECONNREFUSED is sent as UNKNOWN",
    handlers: unary((callback) => callback(Object.assign(new Error("secret"), { code: untyped("ECONNREFUSED") }))),
    outcome: unknown, faults: ["secret"] },
  { name: "an array as the response results in INTERNAL", handlers: unary((callback) => callback(null, untyped([]))),
    outcome: internal,
    faults: ["Failed to serialize message: expected object with Tree structure, got array instead"] },
  { name: "a response of another message type results in INTERNAL",
    handlers: unary((callback) => callback(null, { leavesByName: "none" })), outcome: internal,
    faults: [".garden.v1.Tree.leavesByName: object expected"] },
  { name: "a callback without response and error results in INTERNAL", handlers: unary((callback) => callback(null)),
    outcome: internal, faults: [expect.anything()] },
  { name: "a trailer that is not a Metadata object results in INTERNAL",
    handlers: unary((callback) => callback(null, say("first"), untyped({ "x-tail": "1" }))),
    outcome: { code: status.INTERNAL, details: "internal error" },
    faults: ["metadata?.toHttp2Headers is not a function"] },
  { name: "a metadata key with a space throws in the handler", handlers: unary((callback) => {
      const metadata = new Metadata();
      metadata.set("not allowed", "1");
      callback(null, {}, metadata);
    }), outcome: unknown, faults: ['Metadata key "not allowed" contains illegal characters'] },
  { name: "a message written after the end is not sent", method: "ListTrees", handlers: { listTrees: (call: Writable) => {
        call.write(say("first"));
        call.end();
        setImmediate(() => call.write(say("late")));
        call.end();
      },
    }, outcome: { code: status.OK, messages: said("first") } },
  { name: "a message of another type ends a stream with INTERNAL", method: "ListTrees", handlers: { listTrees: (call: Writable) => {
        call.write(say("first"));
        call.write(untyped(["second"]));
        call.write(say("third"));
        call.end();
      },
    }, outcome: { ...internal, messages: said("first") },
    faults: ["Failed to serialize message: expected object with Tree structure, got array instead"] },
  { name: "a client stream that its handler ends without a callback results in INTERNAL", method: "AddTrees",
    handlers: { addTrees: (call: ServerDuplexStream<Message, Message>) => call.resume().end() },
    outcome: { code: status.INTERNAL, details: "the handler sent no message", messages: [] } },
  { name: "a stream that its handler destroys results in CANCELLED", method: "TradeTrees",
    handlers: { tradeTrees: (call: ServerDuplexStream<Message, Message> & { destroy(): void }) => call.destroy() },
    outcome: { code: status.CANCELLED, details: "the handler destroyed its stream" } },
  { name: "a stream destroyed with an error sends the error's status", method: "TradeTrees", handlers: { tradeTrees: (call: ServerDuplexStream<Message, Message> & { destroy(error: Error): void }) =>
        call.destroy(Object.assign(new Error("no such tree"), { code: status.NOT_FOUND })),
    }, outcome: notFound },
];

test.each(cases)("$name", async ({ handlers, method = "GetTree", keepsOpen = false, outcome, faults = [] }) => {
  await using garden = await startGarden({ ...handlers });
  // A second call on the same server shows that the first has left it intact.
  for (const _ of [1, 2]) expect(await callGarden(garden.address.port, { method, keepsOpen })).toMatchObject(outcome);
  await expect.poll(() => garden.faults.map(({ error }) => messageOf(error))).toEqual([...faults, ...faults]);
  expect(garden.faults.every(({ errorCode }) => errorCode === "ERR_HANDLER_FAILED")).toBe(true);
  await expect.poll(() => garden.openRequests()).toBe(0);
});

test("the fault of a call with a header above 64 KiB names the header", async () => {
  const handlers = unary((callback, call) => {
    const metadata = new Metadata();
    metadata.set("x-large", "a".repeat(70_000));
    call.sendMetadata(metadata);
    callback(null, say("first"));
  });
  await using garden = await startGarden({ ...handlers });
  expect((await callGarden(garden.address.port, { method: "GetTree" })).code).toBe(status.INTERNAL);
  const tooLarge = expect.objectContaining({ message: expect.stringMatching(/^a header or trailer section must /) });
  expect(garden.faults.map(({ error }) => error)).toEqual([tooLarge, tooLarge]);
});

test("a handler that never responds is cancelled at its deadline", async () => {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const handlers = unary((callback, call) => {
    call.on("cancelled", () => {
      callback(null, say("late"));
      callback(notFound);
      resolve(call.cancelled);
    });
  });
  await using garden = await startGarden({ ...handlers });
  expect(await callWithDeadline(garden, "GetTree")).toContain('"code":"deadline_exceeded"');
  expect(await promise).toBe(true);
  await expect.poll(() => garden.openRequests()).toBe(0);
  expect(garden.faults).toEqual([]);
});

test.each(methods)("an unreadable error from %s is sent as UNKNOWN", async (method) => {
  const unreadable = Object.defineProperty(new Error("secret"), "message", { get: failing });
  await using garden = await startGarden(allHandlers(() => Promise.reject(unreadable)));
  for (const _ of [1, 2]) expect(await callGarden(garden.address.port, { method })).toMatchObject(unknown);
  await expect.poll(() => garden.openRequests()).toBe(0);
});

test.each(methods)("the %s handler is not called if the call is already cancelled", async (method) => {
  const passed: string[] = [];
  const waits: Interceptor = (next) => async (request) => {
    await once(request.signal, "abort");
    passed.push(request.method.name);
    return await next(request);
  };
  const called: string[] = [];
  const handlers = allHandlers((call) => void called.push(call.getPath()));
  await using garden = await startGarden(handlers, {}, { interceptors: [waits] });
  for (const _ of [1, 2]) expect(await callWithDeadline(garden, method)).toContain('"code":"deadline_exceeded"');
  await expect.poll(() => passed).toEqual([method, method]);
  await expect.poll(() => garden.openRequests()).toBe(0);
  expect([called, garden.faults]).toEqual([[], []]);
});

test.each(["AddTrees", "TradeTrees"] as const)("a paused %s handler buffers only one request", async (method) => {
  const definition = loadGarden();
  let held = 0;
  const requestDeserialize = (): object => ({ at: (held += 1) });
  const counting = { ...definition, [method]: Object.assign({}, definition[method], { requestDeserialize }) };
  const received: unknown[] = [];
  const handlers = allHandlers((call) => void call.on("data", (message) => received.push(message)).pause());
  await using garden = await startGarden(handlers, {}, {}, counting);
  expect(await callWithDeadline(garden, method, 20)).toContain('"code":"deadline_exceeded"');
  expect([held, received]).toEqual([1, []]);
});

const failingListeners: Readonly<Record<string, () => unknown>> = { throws: failing, rejects: async () => failing() };

test.each(
  (["AddTrees", "TradeTrees"] as const).flatMap((method) =>
    ["data", "end", "readable"].flatMap((event) =>
      Object.keys(failingListeners).map((fails) => ({ method, event, fails })),
    ),
  ),
)('a "$event" listener that $fails ends $method with UNKNOWN', async ({ method, event, fails }) => {
  const handlers = allHandlers((call) => {
    call.on(event, failingListeners[fails] ?? failing);
    if (event === "end") call.resume();
  });
  await using garden = await startGarden(handlers);
  for (const _ of [1, 2]) expect(await callGarden(garden.address.port, { method })).toMatchObject(unknown);
  const fault = ["index out of range", "a handler of grpc-js failed"];
  expect(garden.faults.map(({ error, what }) => [messageOf(error), what])).toEqual([fault, fault]);
  await expect.poll(() => garden.openRequests()).toBe(0);
});

test.each(
  (["AddTrees", "ListTrees", "TradeTrees"] as const).flatMap((method) =>
    Object.keys(failingListeners).map((fails) => ({ method, fails })),
  ),
)('a "close" listener that $fails in $method is reported to onFault', async ({ method, fails }) => {
  const handlers = allHandlers((call, callback) => {
    call.on("close", failingListeners[fails] ?? failing);
    if (callback === undefined) call.end();
    else callback(null, {});
  });
  await using garden = await startGarden(handlers);
  for (const _ of [1, 2]) expect(await callGarden(garden.address.port, { method })).toMatchObject(ok);
  await expect
    .poll(() => garden.faults.map(({ error, what }) => [messageOf(error), what]))
    .toEqual([1, 2].map(() => ["index out of range", 'a listener of "close" failed']));
});

const throwsWhenCancelled: ServerInterceptor = (_definition, call) =>
  new ServerInterceptingCall(call, { start: (next) => next({ onCancel: () => failing() }) });

/** Typed like a listener that returns nothing, as TypeScript accepts async listeners. */
const rejecting: () => unknown = async () => failing();

type Throwing = readonly [name: string, what: string, handlers: object, interceptors: ServerInterceptor[]];
const ofListener = 'a listener of "cancelled" failed';
const throwing: readonly Throwing[] = [
  ["a grpc-js interceptor", "an interceptor of grpc-js failed", allHandlers(() => undefined), [throwsWhenCancelled]],
  ["a listener of the handler", ofListener, allHandlers((call) => void call.on("cancelled", () => failing())), []],
  ["an async listener of the handler", ofListener, allHandlers((call) => void call.on("cancelled", rejecting)), []],
];

test.each(methods.flatMap((method) => throwing.map(([name, what, ...parts]) => ({ method, name, what, parts }))))(
  "when $method is cancelled, $name that throws is reported to onFault",
  async ({ method, what, parts: [handlers, interceptors] }) => {
    await using garden = await startGarden({ ...handlers }, { interceptors });
    for (const _ of [1, 2]) expect(await callWithDeadline(garden, method)).toContain('"code":"deadline_exceeded"');
    await expect
      .poll(() => garden.faults.map((fault) => [messageOf(fault.error), fault.what]))
      .toEqual([1, 2].map(() => ["index out of range", what]));
    await expect.poll(() => garden.openRequests()).toBe(0);
  },
);

test.each(methods)("a grpc-js interceptor receives the status of %s once", async (method) => {
  const statuses: number[] = [];
  const listens: ServerInterceptor = (_definition, call) =>
    new ServerInterceptingCall(call, {
      sendStatus: (end, next) => {
        statuses.push(end.code);
        next(end);
      },
    });
  const handlers = allHandlers((call, callback) => (callback === undefined ? call.end() : callback(null, {})));
  await using garden = await startGarden(handlers, { interceptors: [listens] });
  for (const _ of [1, 2]) expect(await callGarden(garden.address.port, { method })).toMatchObject(ok);
  expect(statuses).toEqual([status.OK, status.OK]);
});

test.each(methods)("a grpc-js interceptor that throws when %s starts results in INTERNAL", async (method) => {
  await using garden = await startGarden(allHandlers(read), { interceptors: [failing] });
  for (const _ of [1, 2]) expect(await callGarden(garden.address.port, { method })).toMatchObject(failed);
  expect(garden.faults.map(({ error }) => messageOf(error))).toEqual(["index out of range", "index out of range"]);
  await expect.poll(() => garden.openRequests()).toBe(0);
});

type Listener = Parameters<ServerInterceptingCall["start"]>[0];

test.each(methods)("a slow interceptor does not call the %s handler after the deadline", async (method) => {
  const passed: string[] = [];
  const called: string[] = [];
  const handlers = allHandlers((call) => void called.push(call.getPath()));
  // ServerInterceptingCall itself would drop the late metadata.
  class Delayed extends ServerInterceptingCall {
    override start(listener: Listener): void {
      const late: (() => void)[] = [];
      super.start({
        onReceiveMetadata: (metadata) => void late.push(() => listener.onReceiveMetadata(metadata)),
        onReceiveMessage: (message) => listener.onReceiveMessage(message),
        onReceiveHalfClose: () => listener.onReceiveHalfClose(),
        onCancel: () => {
          listener.onCancel();
          setImmediate(() => {
            for (const pass of late) pass();
            passed.push(method);
          });
        },
      });
    }
  }
  await using garden = await startGarden(handlers, { interceptors: [(_definition, call) => new Delayed(call)] });
  for (const _ of [1, 2]) expect(await callWithDeadline(garden, method)).toContain('"code":"deadline_exceeded"');
  await expect.poll(() => passed).toEqual([method, method]);
  await expect.poll(() => garden.openRequests()).toBe(0);
  expect([called, garden.faults]).toEqual([[], []]);
});

const passes: ServerInterceptor = (_definition, call) => new ServerInterceptingCall(call);
type SentPart = "sendMetadata" | "sendMessage" | "sendStatus";
const parts: readonly SentPart[] = ["sendMetadata", "sendMessage", "sendStatus"];
const responds = {
  immediately: (respond: () => void) => respond(),
  "after a promise": async (respond: () => void) => respond(),
  "in a timer": (respond: () => void) => void setTimeout(respond),
};

test.each(
  parts.flatMap((part) =>
    (["immediately", "after a promise", "in a timer"] as const).flatMap((when) =>
      methods.flatMap((method) => [0, 1].map((outer) => ({ part, when, method, outer }))),
    ),
  ),
)(
  "$method is INTERNAL if interceptor $outer throws in $part (response $when)",
  async ({ part, when, method, outer }) => {
    const throws: ServerInterceptor = (_definition, call) => new ServerInterceptingCall(call, { [part]: failing });
    const handlers = allHandlers((call, callback) =>
      responds[when](() => {
        call.sendMetadata(new Metadata());
        if (callback !== undefined) return callback(null, {});
        call.write({});
        call.end();
      }),
    );
    const interceptors = outer === 0 ? [passes, throws] : [throws, passes];
    await using garden = await startGarden(handlers, { interceptors });
    for (const _ of [1, 2]) expect(await callGarden(garden.address.port, { method })).toMatchObject(failed);
    const [fault] = garden.faults;
    expect([messageOf(fault?.error), fault?.what]).toEqual(["index out of range", "an interceptor of grpc-js failed"]);
    await expect.poll(() => garden.openRequests()).toBe(0);
  },
);

const throwsAfterStatus: ServerInterceptor = (_definition, call) =>
  new ServerInterceptingCall(call, {
    sendStatus: (end, next) => {
      next(end);
      failing();
    },
  });

test("an exception of an interceptor after the status is reported to onFault", async () => {
  const handlers = allHandlers((_call, callback) => callback?.(null, {}));
  await using garden = await startGarden(handlers, { interceptors: [throwsAfterStatus] });
  for (const _ of [1, 2]) expect(await callGarden(garden.address.port, { method: "GetTree" })).toMatchObject(ok);
  const [fault, second, ...others] = garden.faults;
  expect([messageOf(fault?.error), messageOf(second?.error)]).toEqual(["index out of range", "index out of range"]);
  expect([fault?.what, others]).toEqual(["an interceptor of grpc-js failed", []]);
});
