import { once } from "node:events";
import { setImmediate as nextTurn } from "node:timers/promises";
import { Code, ConnectError, createContextKey, type Interceptor } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
// oxfmt-ignore
import { callings, dataFrame, errorOf, frameFlag, greenhouseClient, headersFrame, type Http2Server, http2Servers,
  openFrames, openGreenhouse, openHttp1, reasonOf, starterFor, startGreenhouse, startWatched, throws, waysFor, within
} from "@protoport/testing";
import { emptyMessage, grpcHeader } from "@protoport/testing/http";

type Handlers = Parameters<typeof startGreenhouse>[0];
const noteKey = createContextKey("none");
const bidirectional = callings.filter(({ name }) => !name.includes("1.1"));
type Readings = { readonly sensors: readonly string[]; readonly error: ConnectError | undefined };

/** Reads a stream until it ends or fails. */
async function readAll(messages: AsyncIterable<{ readonly sensor: string }>): Promise<Readings> {
  const sensors: string[] = [];
  const read = async (): Promise<Readings> => {
    try {
      for await (const { sensor } of messages) sensors.push(sensor);
      return { sensors, error: undefined };
    } catch (error) {
      return { sensors, error: ConnectError.from(error) };
    }
  };
  return await within(read(), "the end of a stream");
}

/** Readings without an end. */
async function* endless(): AsyncGenerator<{ sensor: string }> {
  for (let count = 0; ; count += 1) yield { sensor: String(count) };
}

async function* sending(...sensors: readonly string[]): AsyncGenerator<{ sensor: string }> {
  for (const sensor of sensors) yield { sensor };
}

const stuck: Promise<never> = new Promise(() => {});

async function* stay(): AsyncGenerator<{ sensor: string }> {
  yield await stuck;
}

describe.each(waysFor(callings))("a stream by $name", (calling) => {
  const start = starterFor(calling);

  test("delivers messages of the server with header and trailer", async () => {
    await using greenhouse = await start({
      async *watchReadings({ sensor, count }, { responseHeader, responseTrailer }) {
        responseHeader.set("x-header", "first");
        for (let at = 0; at < count; at += 1) yield { sensor: `${sensor}${String(at)}` };
        responseTrailer.set("x-trailer", "last");
      },
    });
    const received: (string | null)[] = [];
    const onHeader = (header: Headers): number => received.push(header.get("x-header"));
    const onTrailer = (trailer: Headers): number => received.push(trailer.get("x-trailer"));
    const stream = greenhouse.client.watchReadings({ sensor: "s", count: 3 }, { onHeader, onTrailer });
    expect(await readAll(stream)).toEqual({ sensors: ["s0", "s1", "s2"], error: undefined });
    expect(received).toEqual(["first", "last"]);
    expect(await greenhouse.completed(1)).toMatchObject({ httpStatus: 200, error: undefined });
  });

  test("delivers messages of the client", async () => {
    await using greenhouse = await start({
      async recordReadings(readings) {
        let count = 0;
        for await (const { sensor } of readings) count += Number(sensor);
        return { count };
      },
    });
    const { count } = await greenhouse.client.recordReadings(sending("1", "2", "3"));
    expect(count).toBe(6);
  });

  test("ends with the error of its handler after the messages before it", async () => {
    await using greenhouse = await start({
      async *watchReadings() {
        yield { sensor: "only" };
        throw new ConnectError("the sensor broke", Code.DataLoss, { "x-sensor": "broken" });
      },
    });
    const { sensors, error } = await readAll(greenhouse.client.watchReadings({}));
    expect([sensors, error]).toMatchObject([["only"], { code: Code.DataLoss, rawMessage: "the sensor broke" }]);
    expect(error?.metadata.get("x-sensor")).toBe("broken");
    expect((await greenhouse.completed(1)).error).toMatchObject({ code: Code.DataLoss });
  });

  test.each([
    { name: "never stops yielding", watch: endless },
    { name: "is stuck", watch: stay },
  ])("ends at its deadline if its handler $name", async ({ watch }) => {
    await using greenhouse = await start({ watchReadings: () => watch() });
    // The client has no timer.
    const headers = { "connect-timeout-ms": "30", "grpc-timeout": "30m" };
    const { error } = await readAll(greenhouse.client.watchReadings({}, { headers }));
    expect(error?.code).toBe(Code.DeadlineExceeded);
    expect((await greenhouse.completed(1)).error?.code).toBe(Code.DeadlineExceeded);
  });

  test.each([
    ["as long as a timer supports", { "connect-timeout-ms": "2147483647", "grpc-timeout": "596H" }],
    ["longer than a timer supports", { "connect-timeout-ms": "9999999999", "grpc-timeout": "99999999H" }],
  ])("with a timeout %s does not end early", async (_name, headers) => {
    await using greenhouse = await start({
      async *watchReadings(_, { signal }) {
        yield { sensor: "before" };
        // A timer that overflows fires after 1 ms.
        await new Promise((resolve) => setTimeout(resolve, 3));
        yield { sensor: signal.aborted ? "aborted" : "after" };
      },
    });
    const stream = greenhouse.client.watchReadings({}, { headers });
    expect(await readAll(stream)).toEqual({ sensors: ["before", "after"], error: undefined });
  });

  test.each<[name: string, watch: (closed: () => void) => AsyncGenerator<{ sensor: string }>]>(
    Object.entries({
      continues: async function* (closed) {
        try {
          for (let count = 0; ; count += 1) yield { sensor: String(count) };
        } finally {
          closed();
        }
      },
      "waits for its signal": async function* (closed) {
        yield { sensor: "0" };
        yield { sensor: "1" };
        closed();
        await stuck;
      },
    }),
  )("whose handler %s is reported as cancelled after a disconnect", async (_name, watch) => {
    const closed = Promise.withResolvers<void>();
    const reason = Promise.withResolvers<unknown>();
    await using greenhouse = await start({
      watchReadings: (_, { signal }) => {
        signal.addEventListener("abort", () => reason.resolve(signal.reason));
        return watch(closed.resolve);
      },
    });
    const controller = new AbortController();
    const read = async (): Promise<void> => {
      for await (const { sensor } of greenhouse.client.watchReadings({}, { signal: controller.signal })) {
        if (sensor === "1") controller.abort();
      }
    };
    await expect(within(read(), "the end of the stream")).rejects.toMatchObject({ code: Code.Canceled });
    expect(await within(reason.promise, "the signal")).toMatchObject({ code: Code.Canceled });
    await within(closed.promise, "the handler to be closed");
    expect((await greenhouse.completed(1)).error?.code).toBe(Code.Canceled);
  });

  test("runs through the interceptors", async () => {
    const marking: Interceptor = (next) => async (request) => {
      request.contextValues.set(noteKey, request.stream ? "marked" : "unary");
      const response = await next({ ...request });
      response.header.set("x-marked", "yes");
      return response;
    };
    const handlers: Handlers = {
      async *watchReadings(_, { values }) {
        yield { sensor: values.get(noteKey) };
      },
    };
    await using greenhouse = await start(handlers, { interceptors: [marking] });
    const received: (string | null)[] = [];
    const stream = greenhouse.client.watchReadings({}, { onHeader: (header) => received.push(header.get("x-marked")) });
    expect([await readAll(stream), received]).toEqual([{ sensors: ["marked"], error: undefined }, ["yes"]]);
  });

  test("gives its handler the client's remaining time", async () => {
    await using greenhouse = await start({
      async *watchReadings(_, { timeoutMs }) {
        yield { sensor: String(timeoutMs()) };
      },
    });
    const [remaining] = (await readAll(greenhouse.client.watchReadings({}, { timeoutMs: 100_000 }))).sensors;
    expect(Number(remaining)).toBeGreaterThan(0);
    expect(Number(remaining)).toBeLessThanOrEqual(100_000);
    expect((await readAll(greenhouse.client.watchReadings({}))).sensors).toEqual(["undefined"]);
  });

  test("aborts its signal when the server shuts down", async () => {
    const shutdown = new AbortController();
    const handlers: Handlers = {
      async *watchReadings(_, { signal }) {
        yield { sensor: "only" };
        shutdown.abort(new ConnectError("closing time", Code.Unavailable));
        throw signal.reason;
      },
    };
    await using greenhouse = await start(handlers, { shutdownSignal: shutdown.signal });
    const { sensors, error } = await readAll(greenhouse.client.watchReadings({}));
    expect([sensors, error]).toMatchObject([["only"], { code: Code.Unavailable }]);
  });
});

describe.each(waysFor(bidirectional))("bidirectional streams by $name", (calling) => {
  const start = starterFor(calling);

  test("deliver each message before the next is sent", async () => {
    const handlers: Handlers = {
      async *controlClimate(readings) {
        for await (const { sensor } of readings) yield { sensor: `${sensor}!` };
      },
    };
    await using greenhouse = await start(handlers, {});
    const received: string[] = [];
    const turns = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    async function* ask(): AsyncGenerator<{ sensor: string }> {
      yield { sensor: "a" };
      await turns[0]?.promise;
      yield { sensor: "b" };
      await turns[1]?.promise;
    }
    const stream = greenhouse.client.controlClimate(ask());
    for await (const { sensor } of stream) turns[received.push(sensor) - 1]?.resolve();
    expect(received).toEqual(["a!", "b!"]);
  });

  test("end when the handler stops reading", async () => {
    const handlers: Handlers = {
      async *controlClimate(readings) {
        for await (const { sensor } of readings) {
          yield { sensor };
          return;
        }
      },
    };
    await using greenhouse = await start(handlers, {});
    expect(await readAll(greenhouse.client.controlClimate(endless()))).toMatchObject({ sensors: ["0"] });
    expect(await greenhouse.completed(1)).toMatchObject({ httpStatus: 200, error: undefined });
  });
});

type Next = () => Promise<IteratorResult<{ sensor: string }>>;

/** A value that JavaScript may pass regardless of the types. */
function unchecked(value?: object): never {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  return value as never;
}

const broken: Next = throws(new Error("no iterator"));
const end: Next = () => Promise.resolve({ done: true, value: undefined });

/** Yields this many readings, and then the result of `next`. */
function readingsUntil(count: number, last: Next, sensorLength = 1000): AsyncIterable<{ sensor: string }> {
  const value = { sensor: "x".repeat(sensorLength) };
  let calls = 0;
  const next: Next = () => (calls++ < count ? Promise.resolve({ done: false, value }) : last());
  return { [Symbol.asyncIterator]: () => ({ next }) };
}

describe.each(callings.slice(-2))("a stream of an untyped handler, called by $name", (calling) => {
  const start = starterFor(calling);
  const quiet = { onFault: () => undefined };

  test.each<[name: string, count: number, watch: () => AsyncIterable<{ sensor: string }>]>([
    ["returns nothing", 0, () => unchecked()],
    ["returns an object without an iterator", 0, () => unchecked({})],
    ["throws at the first message", 0, () => readingsUntil(0, broken)],
    ["throws at the second message", 1, () => readingsUntil(1, broken)],
    ["throws after a message of several writes", 1, () => readingsUntil(1, broken, 100_000)],
    ["resolves next() without a result", 1, () => readingsUntil(1, () => Promise.resolve(unchecked()))],
  ])("fails with an internal error if the handler %s", async (_name, count, watch) => {
    await using greenhouse = await start({ watchReadings: () => watch() }, { ...quiet, compressMinBytes: 1024 * 1024 });
    const { sensors, error } = await readAll(greenhouse.client.watchReadings({}));
    expect([sensors.length, error?.code, error?.rawMessage]).toEqual([count, Code.Internal, "internal error"]);
    expect((await greenhouse.completed(1)).error?.code).toBe(Code.Internal);
  });

  test("succeeds if its iterator returns results instead of promises", async () => {
    const watch = (): AsyncIterable<{ sensor: string }> => readingsUntil(2, () => unchecked({ done: true }));
    await using greenhouse = await start({ watchReadings: watch }, {});
    const { sensors, error } = await readAll(greenhouse.client.watchReadings({}));
    expect([sensors.length, error]).toEqual([2, undefined]);
  });

  test.each<[name: string, interceptor: Interceptor]>([
    ["nothing", () => async () => unchecked()],
    ["an invalid header", (next) => async (request) => ({ ...(await next(request)), header: unchecked({}) })],
  ])("if an interceptor returns %s, fails with an internal error", async (_name, interceptor) => {
    await using greenhouse = await start(
      // Long enough to be compressed asynchronously.
      { watchReadings: () => readingsUntil(1, end, 10_000) },
      { ...quiet, interceptors: [interceptor] },
    );
    const { error } = await readAll(greenhouse.client.watchReadings({}));
    expect(error).toBeInstanceOf(ConnectError);
    expect((await greenhouse.completed(1)).error?.code).toBe(Code.Internal);
  });
});

const recordReadings = "/greenhouse.v1.GreenhouseService/RecordReadings";

describe("messages after a call's deadline", () => {
  interface Late {
    readonly http2: Http2Server;
    /** How many messages are read before the deadline. */
    readonly read: number;
    readonly resume: Promise<void>;
  }
  /**
   * Starts a greenhouse that reads `read` messages before the deadline. Once the deadline has passed and `resume` has
   * resolved, it reads the rest.
   */
  const startLate = async ({ http2, read, resume }: Late) => {
    const received = Promise.withResolvers<Readings>();
    const handlers: Handlers = {
      async recordReadings(readings, { signal }) {
        const iterator = readings[Symbol.asyncIterator]();
        for (let at = 0; at < read; at += 1) await iterator.next();
        await reasonOf(signal);
        await resume;
        received.resolve(readAll({ [Symbol.asyncIterator]: () => iterator }));
        return await stuck;
      },
    };
    const greenhouse = await startGreenhouse(handlers, {}, { http2 });
    return { greenhouse, received: received.promise };
  };

  const lastAlone = [dataFrame(1, emptyMessage), dataFrame(1, Buffer.of(), frameFlag.endStream)];
  const lastWithEnd = [dataFrame(1, emptyMessage, frameFlag.endStream)];
  test.each(http2Servers)("sent in one write over HTTP/2 (%s) are delivered or reported missing", async (http2) => {
    const { greenhouse, received } = await startLate({ http2, read: 1, resume: Promise.resolve() });
    await using _ = greenhouse;
    using connection = await openFrames(greenhouse.address);
    const header = [...grpcHeader(recordReadings), ["grpc-timeout", "100m"]] as const;
    connection.send(headersFrame(1, header), dataFrame(1, emptyMessage), ...lastWithEnd);
    const { sensors, error } = await received;
    expect(sensors.length === 1 || error !== undefined).toBe(true);
  });

  test.each([
    { engine: "listening", name: "with the stream's end", read: 1, frames: lastWithEnd },
    { engine: "listening", name: "before the stream's end", read: 1, frames: lastAlone },
    { engine: "listening", name: "before the stream's end", read: 0, frames: lastAlone },
    { engine: "mounted", name: "before the stream's end", read: 1, frames: lastAlone },
    { engine: "mounted", name: "before the stream's end", read: 0, frames: lastAlone },
  ] as const)("are delivered or reported missing ($engine, $name, reads: $read)", async ({ engine, read, frames }) => {
    const responded = Promise.withResolvers<void>();
    const { greenhouse, received } = await startLate({ http2: engine, read, resume: responded.promise });
    await using _ = greenhouse;
    using connection = await openFrames(greenhouse.address);
    const header = [...grpcHeader(recordReadings), ["grpc-timeout", "30m"]] as const;
    connection.send(headersFrame(1, header), dataFrame(1, emptyMessage));
    await greenhouse.completed(1);
    if (read > 0) responded.resolve();
    connection.send(...frames, headersFrame(3, grpcHeader("/nothing"), frameFlag.endStream));
    await greenhouse.completed(2);
    responded.resolve();
    const { sensors, error } = await received;
    expect(sensors.length === 2 - read || error !== undefined).toBe(true);
  });

  test("do not prevent the next request on their HTTP/1.1 connection", async () => {
    const responded = Promise.withResolvers<void>();
    const { greenhouse, received } = await startLate({ http2: "listening", read: 1, resume: responded.promise });
    await using _ = greenhouse;
    using connection = await openHttp1(greenhouse.address);
    // More than node reads ahead, and less than the limit for discarding a body on a kept connection.
    const bodyBytes = 200_000;
    const fields = `content-type: application/connect+proto\r\nconnect-timeout-ms: 30\r\ncontent-length: ${bodyBytes}`;
    const head = `POST ${recordReadings} HTTP/1.1\r\nhost: x\r\n${fields}\r\n\r\n`;
    connection.write(Buffer.concat([Buffer.from(head), emptyMessage]));
    expect((await connection.readResponse()).httpStatus).toBe(200);
    connection.write(Buffer.alloc(bodyBytes - 5));
    connection.write("GET /nothing HTTP/1.1\r\nhost: x\r\n\r\n");
    expect((await connection.readResponse()).httpStatus).toBe(404);
    responded.resolve();
    expect((await received).error).toBeDefined();
  });
});

test("a bidirectional stream over HTTP/1.1 ends when a chunk is malformed", async () => {
  const reason = Promise.withResolvers<unknown>();
  await using connection = await openGreenhouse(openHttp1, {
    async *controlClimate(_, { signal }) {
      yield { sensor: "first" };
      reason.resolve(await reasonOf(signal));
    },
  });
  const header = "host: x\r\ncontent-type: application/connect+proto\r\ntransfer-encoding: chunked";
  connection.write(`POST /greenhouse.v1.GreenhouseService/ControlClimate HTTP/1.1\r\n${header}\r\n\r\n`);
  await within(once(connection.socket, "data"), "the first message");
  connection.write("no chunk\r\n");
  expect(await within(reason.promise, "the signal")).toMatchObject({ code: Code.InvalidArgument });
  expect((await connection.greenhouse.completed(1)).error?.code).toBe(Code.InvalidArgument);
});

test("a stream whose deadline passes in its request gate reaches no interceptor", async () => {
  const passed = Promise.withResolvers<void>();
  await using greenhouse = await startWatched({
    requestGate: async ({ signal }) => {
      await reasonOf(signal);
      passed.resolve();
    },
  });
  const [calling = expect.unreachable()] = callings;
  const headers = { "connect-timeout-ms": "5", "grpc-timeout": "5m" };
  const call = greenhouseClient(calling, greenhouse.address).recordReadings(sending("a"), { headers });
  expect((await errorOf(call)).code).toBe(Code.DeadlineExceeded);
  await within(passed.promise, "the gate");
  await nextTurn();
  expect(greenhouse.ran).toEqual([]);
});
