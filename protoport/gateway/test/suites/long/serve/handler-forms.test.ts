import { Code, ConnectError, type Interceptor, type ServiceImpl } from "@connectrpc/connect";
import { afterAll, describe, expect, test } from "vitest";
import type { GreenhouseService } from "../../../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { expectNoUnhandledRejections } from "../../../../../testing/src/callback-forms.ts";
import { callings, greenhouseClient, startGreenhouse, type TestGreenhouse, within } from "@protoport/testing";

// Handlers and interceptors may fail by throwing, by rejecting, or later in their stream. Each form is tested for every
// method kind, with and without interceptors, which use different code paths in the gateway.

type Greenhouse = Partial<ServiceImpl<typeof GreenhouseService>>;
type Client = ReturnType<typeof greenhouseClient>;

/** A call's outcome, which has its messages by sensor or note, and its error. */
type End = { readonly messages: readonly string[]; readonly code: Code | undefined };
const one = { sensor: "one" };

async function* readings(): AsyncGenerator<{ sensor: string }> {
  yield one;
}

async function readAll(stream: AsyncIterable<{ readonly sensor: string }>): Promise<End> {
  const messages: string[] = [];
  try {
    for await (const { sensor } of stream) messages.push(sensor);
    return { messages, code: undefined };
  } catch (error) {
    return { messages, code: ConnectError.from(error).code };
  }
}

async function readOne(call: Promise<{ readonly note?: string; readonly count?: number }>): Promise<End> {
  try {
    const { note, count } = await call;
    return { messages: [note ?? String(count)], code: undefined };
  } catch (error) {
    return { messages: [], code: ConnectError.from(error).code };
  }
}

const calls = {
  unary: (client: Client) => readOne(client.waterBed({})),
  "client stream": (client: Client) => readOne(client.recordReadings(readings())),
  "server stream": (client: Client) => readAll(client.watchReadings({})),
  "both streams": (client: Client) => readAll(client.controlClimate(readings())),
};
type Kind = keyof typeof calls;
const kinds: readonly Kind[] = ["unary", "client stream", "server stream", "both streams"];

interface Row {
  readonly kind: Kind;
  readonly form: string;
  /** The handlers, which may fail by this function. */
  readonly handlers: (fail: () => never) => Greenhouse;
  readonly messages?: readonly string[];
  readonly succeeds?: true;
}

/** Returns an iterable whose next() throws synchronously, which next() of a generator never does. */
function failingIterable(fail: () => never): AsyncIterable<typeof one> {
  return { [Symbol.asyncIterator]: () => ({ next: fail }) };
}

/** A value that the types do not allow, but that an untyped async function returns. */
function later(stream: () => AsyncIterable<typeof one>): AsyncIterable<typeof one> {
  const promise: PromiseLike<AsyncIterable<typeof one>> = {
    // oxlint-disable-next-line unicorn/no-thenable
    then: (resolve, reject) => Promise.resolve().then(stream).then(resolve, reject),
  };
  return Object.assign(Object.create(null), promise);
}

async function* failsBefore(fail: () => never): AsyncGenerator<typeof one> {
  yield fail();
}

async function* failsAfterOne(fail: () => never): AsyncGenerator<typeof one> {
  yield one;
  fail();
}

// oxfmt-ignore
const rows: readonly Row[] = [
  { kind: "unary", form: "returns", handlers: () => ({ waterBed: () => ({ note: "n" }) }), messages: ["n"],
    succeeds: true },
  { kind: "unary", form: "resolves", handlers: () => ({ waterBed: async () => ({ note: "n" }) }), messages: ["n"],
    succeeds: true },
  { kind: "unary", form: "throws", handlers: (fail) => ({ waterBed: () => fail() }) },
  { kind: "unary", form: "rejects", handlers: (fail) => ({ waterBed: async () => fail() }) },
  { kind: "unary", form: "rejects later",
    handlers: (fail) => ({ waterBed: () => new Promise(setImmediate).then(fail) }) },
  { kind: "client stream", form: "returns", handlers: () => ({ recordReadings: () => Promise.resolve({ count: 2 }) }),
    messages: ["2"], succeeds: true },
  { kind: "client stream", form: "throws", handlers: (fail) => ({ recordReadings: () => fail() }) },
  { kind: "client stream", form: "rejects", handlers: (fail) => ({ recordReadings: async () => fail() }) },
  { kind: "client stream", form: "rejects after a message", handlers: (fail) => ({ recordReadings: async (messages) => {
        for await (const _ of messages) fail();
        return {};
      },
    }) },
  ...(["server stream", "both streams"] as const).flatMap((kind): Row[] => {
    const handlersOf = (handle: () => AsyncIterable<typeof one>): Greenhouse =>
      kind === "server stream" ? { watchReadings: handle } : { controlClimate: handle };
    return [
      { kind, form: "yields", handlers: () => handlersOf(readings), messages: ["one"], succeeds: true },
      { kind, form: "resolves with a stream", handlers: () => handlersOf(() => later(readings)), messages: ["one"],
        succeeds: true },
      { kind, form: "throws", handlers: (fail) => handlersOf(() => fail()) },
      { kind, form: "rejects", handlers: (fail) => handlersOf(() => later(fail)) },
      { kind, form: "throws before a message", handlers: (fail) => handlersOf(() => failsBefore(fail)) },
      { kind, form: "throws after a message", handlers: (fail) => handlersOf(() => failsAfterOne(fail)),
        messages: ["one"] },
      { kind, form: "throws in its iterator", handlers: (fail) => handlersOf(() => failingIterable(fail)) },
    ];
  }),
];

const through: readonly { readonly name: string; readonly interceptors: Interceptor[] }[] = [
  { name: "without interceptors", interceptors: [] },
  { name: "through an interceptor that passes on a promise", interceptors: [(next) => (request) => next(request)] },
  { name: "through an interceptor that awaits", interceptors: [(next) => async (request) => await next(request)] },
];

// oxfmt-ignore
const errors = [
  { name: "an error for the client", create: () => new ConnectError("no such bed", Code.NotFound), code: Code.NotFound,
    faults: 0 },
  { name: "a fault", create: () => new Error("a defect"), code: Code.Internal, faults: 1 },
];

expectNoUnhandledRejections();
let current: { readonly handlers: Greenhouse; readonly interceptor?: Interceptor } = { handlers: {} };
let reportedFaults = 0;

function currentHandler<Name extends keyof Greenhouse>(name: Name): NonNullable<Greenhouse[Name]> {
  const handler = current.handlers[name];
  if (handler === undefined) throw new Error(`the test has no handler for ${name}`);
  return handler;
}

const handlersOfTest: Greenhouse = {
  waterBed: (request, context) => currentHandler("waterBed")(request, context),
  recordReadings: (requests, context) => currentHandler("recordReadings")(requests, context),
  watchReadings: (request, context) => currentHandler("watchReadings")(request, context),
  controlClimate: (requests, context) => currentHandler("controlClimate")(requests, context),
};

/** A client for each protocol, and the server that it calls. */
type Callers = readonly { readonly name: string; readonly client: Client; readonly greenhouse: TestGreenhouse }[];

async function startServers(interceptors: Interceptor[]): Promise<Callers> {
  const options = { interceptors, onFault: () => void (reportedFaults += 1) };
  const own = await startGreenhouse(handlersOfTest, options);
  const mounted = await startGreenhouse(handlersOfTest, options, { http2: "mounted" });
  afterAll(async () => {
    await own[Symbol.asyncDispose]();
    await mounted[Symbol.asyncDispose]();
  });
  return callings.map((calling) => {
    const greenhouse = calling.listen.http2 === "mounted" ? mounted : own;
    return { name: calling.name, client: greenhouseClient(calling, greenhouse.address), greenhouse };
  });
}

async function expectEnds(
  callers: Callers,
  kind: Kind,
  running: typeof current,
  want: End & { readonly faults: number },
): Promise<void> {
  current = running;
  for (const { name, client, greenhouse } of callers) {
    // Over HTTP/1.1, node's client cannot send and read at the same time.
    if (kind === "both streams" && name.endsWith("HTTP/1.1")) continue;
    reportedFaults = 0;
    const earlier = greenhouse.completedRequests.length;
    const end = await within(calls[kind](client), `a call by ${name}`);
    const { error } = await greenhouse.completed(earlier + 1);
    expect
      .soft({ calling: name, ...end, reported: error?.code, faults: reportedFaults })
      .toEqual({ calling: name, messages: want.messages, code: want.code, reported: want.code, faults: want.faults });
  }
}

const serversThrough = await Promise.all(
  through.map(async ({ name, interceptors }) => ({ name, callers: await startServers(interceptors) })),
);

describe.each(serversThrough)("$name", ({ callers }) => {
  test.each(rows.filter(({ succeeds }) => succeeds))("$kind: a handler that $form succeeds", async (row) => {
    const { kind, handlers, messages = [] } = row;
    await expectEnds(callers, kind, { handlers: handlers(neverCalled) }, { messages, code: undefined, faults: 0 });
  });

  describe.each(errors)("with $name", ({ create, code, faults }) => {
    const fail = (): never => {
      throw create();
    };

    test.each(rows.filter(({ succeeds }) => !succeeds))("$kind: a handler that $form fails its call", async (row) => {
      const { kind, handlers, messages = [] } = row;
      await expectEnds(callers, kind, { handlers: handlers(fail) }, { messages, code, faults });
    });
  });
});

function neverCalled(): never {
  throw new Error("a handler that succeeds has failed");
}

const streams = { watchReadings: readings, controlClimate: readings };
const working: Greenhouse = { waterBed: () => ({}), recordReadings: () => Promise.resolve({}), ...streams };

const interceptorForms: readonly { readonly form: string; readonly create: (fail: () => never) => Interceptor }[] = [
  { form: "throws", create: (fail) => () => () => fail() },
  { form: "rejects", create: (fail) => () => async () => fail() },
  { form: "throws after its handler", create: (fail) => (next) => (request) => next(request).then(fail) },
  { form: "rejects after its handler", create: (fail) => (next) => async (request) => (await next(request), fail()) },
];

const interceptorOfTest: Interceptor = (next) => (request) => {
  if (current.interceptor === undefined) throw new Error("the test has no interceptor");
  return current.interceptor(next)(request);
};
const serversIntercepted = await startServers([interceptorOfTest]);

describe.each(errors)("with $name", ({ create, code, faults }) => {
  const fail = (): never => {
    throw create();
  };
  const each = kinds.flatMap((kind) => interceptorForms.map((form) => ({ kind, ...form })));

  test.each(each)("$kind: an interceptor that $form ends the call with the error", async (row) => {
    const running = { handlers: working, interceptor: row.create(fail) };
    await expectEnds(serversIntercepted, row.kind, running, { messages: [], code, faults });
  });
});
