import { EventEmitter } from "node:events";
import { Code, ConnectError, createContextKey, type Interceptor } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { within } from "../../support/deadline.ts";
import { encodeEnvelope } from "../../support/envelope.ts";
import { callings, greenhouseClient, startGreenhouse } from "../../support/greenhouse.ts";
import { openHttp1 } from "../../support/http1-connection.ts";
import { openHttp2 } from "../../support/http2-connection.ts";

const noteKey = createContextKey("none");
const bidirectional = callings.filter(({ name }) => !name.includes("1.1"));

interface Readings {
  readonly sensors: readonly string[];
  readonly error: ConnectError | undefined;
}

/** Reads a stream to its end, whatever the end is. */
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

describe.each(callings)("a stream by $name", (calling) => {
  const start = (
    implementation: Parameters<typeof startGreenhouse>[0],
    options?: Parameters<typeof startGreenhouse>[1],
  ) => startGreenhouse(implementation, options, calling.listen);

  test("comes from the server, with header and trailer", async () => {
    await using greenhouse = await start({
      async *watchReadings({ sensor, count }, { responseHeader, responseTrailer }) {
        responseHeader.set("x-header", "first");
        for (let at = 0; at < count; at += 1) yield { sensor: `${sensor}${String(at)}` };
        responseTrailer.set("x-trailer", "last");
      },
    });
    const seen: (string | null)[] = [];
    const stream = greenhouseClient(calling, greenhouse.address).watchReadings(
      { sensor: "s", count: 3 },
      {
        onHeader: (header) => seen.push(header.get("x-header")),
        onTrailer: (trailer) => seen.push(trailer.get("x-trailer")),
      },
    );
    expect(await readAll(stream)).toEqual({ sensors: ["s0", "s1", "s2"], error: undefined });
    expect(seen).toEqual(["first", "last"]);
    expect(await greenhouse.answered(1)).toMatchObject({ httpStatus: 200, error: undefined });
  });

  test("comes from the client", async () => {
    await using greenhouse = await start({
      async recordReadings(readings) {
        let count = 0;
        for await (const { sensor } of readings) count += Number(sensor);
        return { count };
      },
    });
    const { count } = await greenhouseClient(calling, greenhouse.address).recordReadings(sending("1", "2", "3"));
    expect(count).toBe(6);
  });

  test("ends with the error of its handler, behind the messages before it", async () => {
    await using greenhouse = await start({
      async *watchReadings() {
        yield { sensor: "only" };
        throw new ConnectError("the sensor broke", Code.DataLoss, { "x-sensor": "broken" });
      },
    });
    const { sensors, error } = await readAll(greenhouseClient(calling, greenhouse.address).watchReadings({}));
    expect(sensors).toEqual(["only"]);
    expect(error).toMatchObject({ code: Code.DataLoss, rawMessage: "the sensor broke" });
    expect(error?.metadata.get("x-sensor")).toBe("broken");
    expect((await greenhouse.answered(1)).error).toMatchObject({ code: Code.DataLoss });
  });

  test.each([
    { name: "yields for ever", watch: endless },
    { name: "is stuck", watch: stay },
  ])("ends at its deadline although its handler $name", async ({ watch }) => {
    await using greenhouse = await start({ watchReadings: () => watch() });
    // The clock of the client does not run.
    const headers = { "connect-timeout-ms": "30", "grpc-timeout": "30m" };
    const { error } = await readAll(greenhouseClient(calling, greenhouse.address).watchReadings({}, { headers }));
    expect(error?.code).toBe(Code.DeadlineExceeded);
    expect((await greenhouse.answered(1)).error?.code).toBe(Code.DeadlineExceeded);
  });

  test.each<{ name: string; watch: (left: () => void) => AsyncGenerator<{ sensor: string }> }>([
    {
      name: "goes on",
      watch: async function* (left) {
        try {
          for (let count = 0; ; count += 1) yield { sensor: String(count) };
        } finally {
          left();
        }
      },
    },
    {
      name: "waits for its signal",
      watch: async function* (left) {
        yield { sensor: "0" };
        yield { sensor: "1" };
        left();
        await stuck;
      },
    },
  ])("is told of as cancelled when the client has had enough of a handler that $name", async ({ watch }) => {
    const left = Promise.withResolvers<void>();
    const reason = Promise.withResolvers<unknown>();
    await using greenhouse = await start({
      watchReadings: (_, { signal }) => {
        signal.addEventListener("abort", () => reason.resolve(signal.reason));
        return watch(left.resolve);
      },
    });
    const controller = new AbortController();
    const client = greenhouseClient(calling, greenhouse.address);
    const read = async (): Promise<void> => {
      for await (const { sensor } of client.watchReadings({}, { signal: controller.signal })) {
        if (sensor === "1") controller.abort();
      }
    };
    await expect(within(read(), "the end of the stream")).rejects.toMatchObject({ code: Code.Canceled });
    expect(await within(reason.promise, "the signal")).toMatchObject({ code: Code.Canceled });
    await within(left.promise, "the handler to be let go");
    expect((await greenhouse.answered(1)).error?.code).toBe(Code.Canceled);
  });

  test("runs through the interceptors", async () => {
    const marking: Interceptor = (next) => async (request) => {
      request.contextValues.set(noteKey, request.stream ? "marked" : "unary");
      const response = await next({ ...request });
      response.header.set("x-marked", "yes");
      return response;
    };
    await using greenhouse = await start(
      {
        async *watchReadings(_, { values }) {
          yield { sensor: values.get(noteKey) };
        },
      },
      { interceptors: [marking] },
    );
    const seen: (string | null)[] = [];
    const stream = greenhouseClient(calling, greenhouse.address).watchReadings(
      {},
      { onHeader: (header) => seen.push(header.get("x-marked")) },
    );
    expect(await readAll(stream)).toEqual({ sensors: ["marked"], error: undefined });
    expect(seen).toEqual(["yes"]);
  });

  test("is refused by admit before a message is read", async () => {
    let ran = false;
    await using greenhouse = await start(
      {
        recordReadings: async () => {
          ran = true;
          return { count: 1 };
        },
      },
      {
        admit: () => {
          throw new ConnectError("not you", Code.PermissionDenied, { "x-why": "because" });
        },
      },
    );
    const client = greenhouseClient(calling, greenhouse.address);
    const { error } = await readAll(client.watchReadings({}));
    expect(error).toMatchObject({ code: Code.PermissionDenied, rawMessage: "not you" });
    expect(error?.metadata.get("x-why")).toBe("because");
    await expect(client.recordReadings(sending("1"))).rejects.toMatchObject({ code: Code.PermissionDenied });
    expect(ran).toBe(false);
  });

  test("has its signal aborted when the server shuts down", async () => {
    const shutdown = new AbortController();
    await using greenhouse = await start(
      {
        async *watchReadings(_, { signal }) {
          yield { sensor: "only" };
          shutdown.abort(new ConnectError("closing time", Code.Unavailable));
          throw signal.reason;
        },
      },
      { shutdownSignal: shutdown.signal },
    );
    const { sensors, error } = await readAll(greenhouseClient(calling, greenhouse.address).watchReadings({}));
    expect(sensors).toEqual(["only"]);
    expect(error).toMatchObject({ code: Code.Unavailable });
  });
});

describe.each(bidirectional)("both streams at once by $name", (calling) => {
  test("answer each other", async () => {
    await using greenhouse = await startGreenhouse(
      {
        async *controlClimate(readings) {
          for await (const { sensor } of readings) yield { sensor: `${sensor}!` };
        },
      },
      {},
      calling.listen,
    );
    const answered: string[] = [];
    const turns = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    async function* ask(): AsyncGenerator<{ sensor: string }> {
      yield { sensor: "a" };
      await turns[0]?.promise;
      yield { sensor: "b" };
      await turns[1]?.promise;
    }
    const stream = greenhouseClient(calling, greenhouse.address).controlClimate(ask());
    for await (const { sensor } of stream) turns[answered.push(sensor) - 1]?.resolve();
    expect(answered).toEqual(["a!", "b!"]);
  });

  test("end when the handler has heard enough", async () => {
    await using greenhouse = await startGreenhouse(
      {
        async *controlClimate(readings) {
          for await (const { sensor } of readings) {
            yield { sensor };
            return;
          }
        },
      },
      {},
      calling.listen,
    );
    const stream = greenhouseClient(calling, greenhouse.address).controlClimate(endless());
    expect(await readAll(stream)).toMatchObject({ sensors: ["0"] });
    expect(await greenhouse.answered(1)).toMatchObject({ httpStatus: 200, error: undefined });
  });
});

test.each([
  { name: "HTTP/1.1", http2: "own" },
  { name: "HTTP/2 on node's engine", http2: "node" },
  { name: "HTTP/2 on the engine of our own", http2: "own" },
] as const)("a stream whose client leaves while it is admitted does not run over $name", async ({ name, http2 }) => {
  let ran = false;
  const asked = Promise.withResolvers<void>();
  await using greenhouse = await startGreenhouse(
    {
      async *watchReadings() {
        ran = true;
        yield await stuck;
      },
    },
    {
      admit: async ({ connection }) => {
        asked.resolve();
        if (connection instanceof EventEmitter) await new Promise((resolve) => connection.once("close", resolve));
      },
    },
    { http2 },
  );
  const request = {
    httpMethod: "POST",
    path: "/greenhouse.v1.GreenhouseService/WatchReadings",
    header: [["content-type", "application/connect+proto"]],
    body: encodeEnvelope(0, Buffer.alloc(0)),
  } as const;
  if (name === "HTTP/1.1") {
    using connection = await openHttp1(greenhouse.address);
    connection.request(request);
    await within(asked.promise, "admit");
  } else {
    using connection = await openHttp2(greenhouse.address);
    connection.open(request).on("error", () => undefined);
    await within(asked.promise, "admit");
  }
  expect((await greenhouse.answered(1)).error?.code).toBe(Code.Canceled);
  expect(ran).toBe(false);
});
