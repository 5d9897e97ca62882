import { getEventListeners } from "node:events";
import { setImmediate as nextTurn } from "node:timers/promises";
import { Code, ConnectError, createContextKey, type HandlerContext, type Interceptor } from "@connectrpc/connect";
import { describe, expect, test, vi } from "vitest";
import { ReadingSchema } from "../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
// oxfmt-ignore
import { callings, dataFrame, errorOf, exchange, frameFlag, getReadingProcedure, greenhouseClient, headersFrame,
  type Http2Server, http2Servers, openFrames, openGreenhouse, readOutcome, reasonOf, rpcRequest, starterFor,
  startGreenhouse, waterBedProcedure, waysFor, wireFormats, wiresOf, within } from "@protoport/testing";
import { emptyMessage, grpcHeader } from "@protoport/testing/http";

const noteKey = createContextKey("none");

/**
 * Calls with a deadline that only the server measures. A client with its own clock may time out before its request has
 * arrived. On a busy machine the deadline may pass before the call has reached the tested state, so it is longer then.
 */
async function passDeadline(client: ReturnType<typeof greenhouseClient>, isThere: () => boolean): Promise<void> {
  for (let ms = 30; ; ms *= 10) {
    const headers = { "connect-timeout-ms": String(ms), "grpc-timeout": `${String(ms)}m` };
    expect((await errorOf(client.waterBed({}, { headers }))).code).toBe(Code.DeadlineExceeded);
    if (isThere()) return;
  }
}

describe.each(waysFor(callings))("a unary call by $name", (calling) => {
  const start = starterFor(calling);

  test.each([{ length: 65_531 }, { length: 65_532 }, { length: 65_533 }, { length: 1_000_000 }])(
    "echoes a string with $length characters, a header and a trailer",
    async ({ length }) => {
      await using greenhouse = await start({
        getReading: ({ sensor }, { responseHeader, responseTrailer }) => {
          responseHeader.set("x-header", "first");
          responseTrailer.set("x-trailer", "last");
          return { sensor };
        },
      });
      const received: (string | null)[] = [];
      const sensor = "0123456789abcdef-".repeat(length / 17 + 1).slice(0, length);
      const onHeader = (header: Headers): number => received.push(header.get("x-header"));
      const onTrailer = (trailer: Headers): number => received.push(trailer.get("x-trailer"));
      const reading = await greenhouse.client.getReading({ sensor }, { onHeader, onTrailer });
      expect([reading.sensor === sensor, received]).toEqual([true, ["first", "last"]]);
      expect(await greenhouse.completed(1)).toMatchObject({ httpStatus: 200, error: undefined });
    },
  );

  describe("the signal of its handler", () => {
    test("is aborted after the response", async () => {
      let signal: AbortSignal | undefined;
      await using greenhouse = await start({
        waterBed: (_, context) => {
          ({ signal } = context);
          expect(signal.aborted).toBe(false);
          return {};
        },
      });
      await greenhouse.client.waterBed({});
      await greenhouse.completed(1);
      expect(signal?.aborted).toBe(true);
    });

    test("is aborted if it is first read after the response", async () => {
      let context: HandlerContext | undefined;
      await using greenhouse = await start({ waterBed: (_, handlerContext) => ((context = handlerContext), {}) });
      await greenhouse.client.waterBed({});
      await greenhouse.completed(1);
      expect(context?.signal.aborted).toBe(true);
    });

    test("is aborted with DEADLINE_EXCEEDED at the deadline", async () => {
      let reason: unknown;
      await using greenhouse = await start({
        waterBed: async (_, { signal }) => {
          reason = await reasonOf(signal);
          throw reason;
        },
      });
      await passDeadline(greenhouse.client, () => reason !== undefined);
      expect((await greenhouse.completed(1)).error?.code).toBe(Code.DeadlineExceeded);
      expect(reason).toMatchObject({ code: Code.DeadlineExceeded });
    });

    test("is aborted when the client cancels", async () => {
      const controller = new AbortController();
      const ended = Promise.withResolvers<unknown>();
      await using greenhouse = await start({
        waterBed: async (_, { signal }) => {
          controller.abort();
          ended.resolve(await reasonOf(signal));
          return {};
        },
      });
      expect((await errorOf(greenhouse.client.waterBed({}, { signal: controller.signal }))).code).toBe(Code.Canceled);
      expect(await within(ended.promise, "the end of the call")).toMatchObject({ code: Code.Canceled });
      expect((await greenhouse.completed(1)).error?.code).toBe(Code.Canceled);
    });

    test("is aborted with the shutdown reason when the server shuts down", async () => {
      const shutdown = new AbortController();
      let runs = 0;
      const handlers: Parameters<typeof startGreenhouse>[0] = {
        waterBed: async (_, { signal }) => {
          runs += 1;
          shutdown.abort(new ConnectError("closing time", Code.Unavailable));
          throw await reasonOf(signal);
        },
      };
      await using greenhouse = await start(handlers, { shutdownSignal: shutdown.signal });
      const error = await errorOf(greenhouse.client.waterBed({}));
      expect(error).toMatchObject({ code: Code.Unavailable, rawMessage: "closing time" });
      // From now on, new calls' signals are already aborted, and no handler runs.
      expect([(await errorOf(greenhouse.client.waterBed({}))).code, runs]).toEqual([Code.Unavailable, 1]);
    });

    test("does not listen to the shutdown signal after the call", async () => {
      const shutdown = new AbortController();
      await using greenhouse = await start({ waterBed: () => ({}) }, { shutdownSignal: shutdown.signal });
      await greenhouse.client.waterBed({});
      await greenhouse.completed(1);
      expect(getEventListeners(shutdown.signal, "abort")).toEqual([]);
    });
  });

  test.each(["the client cancels it", "its deadline"])("in an interceptor is not handled after %s", async (end) => {
    const reached: string[] = [];
    const controller = new AbortController();
    const slow: Interceptor = (next) => async (request) => {
      reached.push("interceptor");
      if (end === "the client cancels it") controller.abort();
      await reasonOf(request.signal);
      reached.push("next");
      return await next({ ...request });
    };
    const waterBed = (): object => (reached.push("handler"), {});
    await using greenhouse = await start({ waterBed }, { interceptors: [slow] });
    if (end === "its deadline") await passDeadline(greenhouse.client, () => reached.length > 0);
    else await errorOf(greenhouse.client.waterBed({}, { signal: controller.signal }));
    await expect.poll(() => reached).toContain("next");
    await nextTurn();
    expect(reached).not.toContain("handler");
  });

  describe("the response of a handler", () => {
    test.each([
      { name: "a non-ASCII message", message: "jeden 🌱 ä%\n", want: "jeden 🌱 ä%\n" },
      { name: "lone surrogates", message: "a\ud800b", want: "a\ufffdb" },
      { name: "an empty message", message: "", want: "" },
    ])("has the text of a thrown ConnectError with $name", async ({ message, want }) => {
      await using greenhouse = await start({
        waterBed: () => {
          throw new ConnectError(message, Code.ResourceExhausted, { "x-tank": "empty" }, [
            { desc: ReadingSchema, value: { sensor: "tank" } },
          ]);
        },
      });
      const error = await errorOf(greenhouse.client.waterBed({}));
      expect(error).toMatchObject({ code: Code.ResourceExhausted, rawMessage: want });
      expect(error.metadata.get("x-tank")).toBe("empty");
      expect(error.findDetails(ReadingSchema)).toMatchObject([{ sensor: "tank" }]);
    });

    test.each([
      { name: "the client's shorter timeout", timeoutMs: 20_000, want: /^1[0-9]{4}$/ },
      { name: "the client's longer timeout", timeoutMs: 400_000, want: /^3[0-9]{5}$/ },
      { name: "the default timeout", timeoutMs: undefined, want: /^[45][0-9]{4}$/ },
    ])("is limited by $name alone", async ({ timeoutMs, want }) => {
      const options = { limits: { defaultTimeoutMs: 60_000 } };
      await using greenhouse = await start({ waterBed: (_, call) => ({ note: String(call.timeoutMs()) }) }, options);
      const { note } = await greenhouse.client.waterBed({}, timeoutMs === undefined ? {} : { timeoutMs });
      expect(note).toMatch(want);
    });

    test("is dropped when the handler returns after the deadline", async () => {
      const late = Promise.withResolvers<Record<string, never>>();
      await using greenhouse = await start({ waterBed: () => late.promise, getReading: () => ({ sensor: "s" }) });
      await passDeadline(greenhouse.client, () => true);
      late.resolve({});
      expect(await greenhouse.client.getReading({})).toMatchObject({ sensor: "s" });
      await greenhouse.completed(2);
      expect(greenhouse.completedRequests).toHaveLength(2);
    });

    test("is an internal error when its message cannot be serialized", async () => {
      await using greenhouse = await start({ waterBed: () => ({ liters: 2 ** 40 }) });
      expect((await errorOf(greenhouse.client.waterBed({}))).code).toBe(Code.Internal);
    });
  });

  test("with a request gate is refused before its message is read", async () => {
    const calls: string[] = [];
    const handlers = { waterBed: () => (calls.push("handler"), {}) };
    await using greenhouse = await start(handlers, {
      readMaxBytes: 10,
      requestGate: ({ requestHeader, responseHeader }) => {
        calls.push(requestHeader.get("x-sent") ?? "");
        responseHeader.set("x-gate", "closed");
        throw new ConnectError("not now", Code.Unavailable);
      },
    });
    const call = greenhouse.client.waterBed({ note: "more than ten bytes" }, { headers: { "x-sent": "sent" } });
    const error = await errorOf(call);
    expect(error).toMatchObject({ code: Code.Unavailable, rawMessage: "not now" });
    expect([error.metadata.get("x-gate"), calls]).toEqual(["closed", ["sent"]]);
  });

  test.each([
    { name: "immediately", wait: undefined },
    { name: "later", wait: nextTurn },
  ])("with a request gate that resolves $name sets context values for interceptors and handler", async ({ wait }) => {
    const notes: string[] = [];
    await using greenhouse = await start(
      { waterBed: (_, { values }) => ({ note: values.get(noteKey) }) },
      {
        requestGate: (context) => {
          context.values.set(noteKey, "from the gate");
          return wait?.().then(() => undefined);
        },
        interceptors: [
          (next) => (request) => {
            notes.push(request.contextValues.get(noteKey));
            return next(request);
          },
        ],
      },
    );
    expect([(await greenhouse.client.waterBed({})).note, notes]).toEqual(["from the gate", ["from the gate"]]);
  });
});

const binaryFormats = [
  { format: "connect-proto", httpStatus: 400 },
  { format: "grpc", httpStatus: 200 },
  { format: "grpc-web", httpStatus: 200 },
] as const;

const serversOf = (version: string): readonly Http2Server[] => (version === "2" ? http2Servers : ["listening"]);
const binaryCallings = binaryFormats.flatMap(({ format, httpStatus }) =>
  wiresOf(format).flatMap((wire) => serversOf(wire.httpVersion).map((http2) => ({ ...wire, http2, httpStatus }))),
);

test.each(binaryCallings)(
  "by $name over HTTP/2 ($http2), a call with an invalid message fails",
  async ({ format, httpVersion, http2, httpStatus }) => {
    await using greenhouse = await startGreenhouse({ waterBed: () => ({}) }, {}, { http2 });
    const request = rpcRequest(format, Buffer.of(0xff), [], waterBedProcedure);
    const response = await exchange(greenhouse.address, httpVersion, request);
    expect([response.httpStatus, readOutcome(format, response).code]).toEqual([httpStatus, Code.InvalidArgument]);
  },
);

test("a Connect GET whose message is not base64 is refused", async () => {
  await using greenhouse = await startGreenhouse({});
  const path = `${getReadingProcedure}?encoding=proto&base64=1&message=***`;
  const { httpStatus, body } = await exchange(greenhouse.address, "2", { httpMethod: "GET", path, header: [] });
  expect(httpStatus).toBe(400);
  const message: unknown = expect.stringContaining("base64");
  expect(JSON.parse(String(body))).toMatchObject({ code: "invalid_argument", message });
});

test("timeoutMs() rounds a gRPC timeout in microseconds down to milliseconds", async () => {
  const remaining: (number | undefined)[] = [];
  await using greenhouse = await startGreenhouse({ waterBed: (_, { timeoutMs }) => (remaining.push(timeoutMs()), {}) });
  const timeout = ["grpc-timeout", "10000900u"] as const;
  await exchange(greenhouse.address, "2", rpcRequest(wireFormats.grpc, Buffer.of(), [timeout], waterBedProcedure));
  expect(remaining).toEqual([expect.toSatisfy((ms) => Number.isInteger(ms) && ms <= 10_000)]);
});

test("a gRPC call with a timeout of one nanosecond reaches its handler", async () => {
  const called = Promise.withResolvers<void>();
  await using connection = await openGreenhouse(openFrames, { waterBed: () => (called.resolve(), {}) });
  const header = [...grpcHeader("/greenhouse.v1.GreenhouseService/WaterBed"), ["grpc-timeout", "1n"]] as const;
  const reached = within(called.promise, "the handler");
  // Fake timers keep the timeout from passing on a busy machine.
  using timers = new DisposableStack();
  timers.defer(() => void vi.useRealTimers());
  vi.useFakeTimers({ toFake: ["setTimeout"] });
  connection.send(headersFrame(1, header), dataFrame(1, emptyMessage, frameFlag.endStream));
  await reached;
});
