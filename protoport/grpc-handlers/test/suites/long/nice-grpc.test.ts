import { setImmediate } from "node:timers/promises";
import { status } from "@grpc/grpc-js";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createTestGateway, listenForTests, type Listening } from "@protoport/testing";
import { addNiceGrpcService, readServices } from "../../../src/nice-grpc.ts";
import { loadGarden } from "../../garden.ts";
import { callGarden } from "../../grpc-js-client.ts";
import { type Context, generateNiceGarden, niceCases, type NiceGarden } from "../../nice-cases.ts";

// The suite nice-grpc also runs the cases with the package.

/** An error with the members by which nice-grpc recognizes errors from its other versions. */
class ServerError extends Error {
  readonly "@@nice-grpc:ServerError" = true;
  readonly code: status;
  readonly details: string;

  constructor(code: status, details: string) {
    super(details);
    this.code = code;
    this.details = details;
  }
}

const descriptors = readServices(loadGarden());
const kinds = ["ts-proto", "proto-loader"] as const;
let garden: NiceGarden;
beforeAll(async () => void (garden = await generateNiceGarden()));
afterAll(() => garden[Symbol.dispose]());

function start(kind: (typeof kinds)[number], handlers: object): Promise<Listening> {
  const definition = kind === "ts-proto" ? garden.definition : loadGarden();
  const routes = (router: Parameters<typeof addNiceGrpcService>[0]): void =>
    void addNiceGrpcService(router, definition, handlers, { descriptors });
  return listenForTests(createTestGateway({ routes, onFault: () => {} }));
}

test.each(niceCases.flatMap((one) => kinds.map((kind) => ({ ...one, kind }))))(
  "with a $kind definition, $name on the gateway",
  async ({ handlers, kind, call, outcome, deviation }) => {
    await using server = await start(kind, handlers(ServerError));
    expect(await callGarden(server.address.port, call)).toMatchObject({ ...outcome, ...deviation });
  },
);

test.each(["GetTree", "AddTrees", "ListTrees", "TradeTrees"] as const)(
  "the handler's signal in %s aborts when the client cancels the call",
  async (method) => {
    const started = Promise.withResolvers<void>();
    const aborted = Promise.withResolvers<boolean>();
    const wait = async (_request: unknown, { signal }: Context): Promise<object> => {
      signal.addEventListener("abort", () => aborted.resolve(signal.aborted));
      started.resolve();
      await aborted.promise;
      return {};
    };
    const stream = async function* (request: unknown, context: Context): AsyncGenerator<object> {
      yield await wait(request, context);
    };
    const handlers = { getTree: wait, addTrees: wait, listTrees: stream, tradeTrees: stream };
    await using server = await start("ts-proto", handlers);
    const onStart = (cancel: () => void): void => void started.promise.then(cancel);
    const { code } = await callGarden(server.address.port, { method, onStart, keepsOpen: true });
    expect([code, await aborted.promise]).toEqual([status.CANCELLED, true]);
  },
);

test.each([
  { name: "the client cancels", message: {}, ends: status.CANCELLED },
  { name: "a message cannot be serialized", message: { leavesByName: { oak: 7 } }, ends: status.INTERNAL },
])("a generator that awaits between messages closes when $name", async ({ message, ends }) => {
  const closed = Promise.withResolvers<void>();
  const listTrees = async function* (): AsyncGenerator<object> {
    try {
      yield {};
      for (;;) {
        await setImmediate();
        yield message;
      }
    } finally {
      closed.resolve();
    }
  };
  await using server = await start("proto-loader", { listTrees });
  const received = Promise.withResolvers<void>();
  const onStart = (cancel: () => void): void => void received.promise.then(cancel);
  const call = { method: "ListTrees", onMessage: () => received.resolve() } as const;
  const { code } = await callGarden(server.address.port, ends === status.CANCELLED ? { ...call, onStart } : call);
  expect(code).toBe(ends);
  await closed.promise;
});

test("the signal of a stream does not abort after the last message", async () => {
  const signals: AbortSignal[] = [];
  const closed = Promise.withResolvers<void>();
  const listTrees = async function* (_request: unknown, { signal }: Context): AsyncGenerator<object> {
    signals.push(signal);
    yield {};
    closed.resolve();
  };
  await using server = await start("proto-loader", { listTrees });
  expect(await callGarden(server.address.port, { method: "ListTrees" })).toMatchObject({ code: status.OK });
  await closed.promise;
  await setImmediate();
  expect(signals.map(({ aborted }) => aborted)).toEqual([false]);
});

test("a stream handler that returns an array results in UNKNOWN", async () => {
  await using server = await start("ts-proto", { listTrees: async () => [] });
  expect(await callGarden(server.address.port, { method: "ListTrees" })).toMatchObject({ code: status.UNKNOWN });
});

function throwUnprintable(): never {
  throw Object.create(null);
}

function throwUnreadable(): never {
  throw Object.defineProperty(new Error("secret"), "message", { get: throwUnprintable });
}

test.each(
  (["GetTree", "ListTrees"] as const).flatMap((method) => [
    { method, thrown: "an object without a prototype", fail: throwUnprintable },
    { method, thrown: "an error with a throwing message getter", fail: throwUnreadable },
  ]),
)("a $method handler that throws $thrown results in UNKNOWN", async ({ method, fail }) => {
  const listTrees = async function* (): AsyncGenerator<object> {
    yield fail();
  };
  await using server = await start("ts-proto", { getTree: async () => fail(), listTrees });
  const details = "Unknown error";
  for (const _ of [1, 2])
    expect(await callGarden(server.address.port, { method })).toMatchObject({ code: status.UNKNOWN, details });
});
