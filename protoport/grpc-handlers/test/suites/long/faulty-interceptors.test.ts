import { Metadata, ServerInterceptingCall, type ServerInterceptor, status } from "@grpc/grpc-js";
import { expect, test } from "vitest";
import { allHandlers, callWithDeadline, failing, messageOf, methods, read } from "../../faulty-calls.ts";
import { startGarden } from "../../garden.ts";
import { callGarden } from "../../grpc-js-client.ts";

// Interceptors that break grpc-js's rules. They neither exit the process nor keep a call open.

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
    for (const _ of [1, 2])
      expect(await (await callWithDeadline(garden, method)).text()).toContain('"code":"deadline_exceeded"');
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
  for (const _ of [1, 2]) expect(await callGarden(garden.address.port, { method })).toMatchObject({ code: status.OK });
  expect(statuses).toEqual([status.OK, status.OK]);
});

test.each(methods)("a grpc-js interceptor that throws when %s starts results in INTERNAL", async (method) => {
  await using garden = await startGarden(allHandlers(read), { interceptors: [failing] });
  for (const _ of [1, 2])
    expect(await callGarden(garden.address.port, { method })).toMatchObject({ code: status.INTERNAL });
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
  for (const _ of [1, 2])
    expect(await (await callWithDeadline(garden, method)).text()).toContain('"code":"deadline_exceeded"');
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
    for (const _ of [1, 2])
      expect(await callGarden(garden.address.port, { method })).toMatchObject({ code: status.INTERNAL });
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
  for (const _ of [1, 2])
    expect(await callGarden(garden.address.port, { method: "GetTree" })).toMatchObject({ code: status.OK });
  const [fault, second, ...others] = garden.faults;
  expect([messageOf(fault?.error), messageOf(second?.error)]).toEqual(["index out of range", "index out of range"]);
  expect([fault?.what, others]).toEqual(["an interceptor of grpc-js failed", []]);
});
