import { setImmediate as nextTurn } from "node:timers/promises";
import { create } from "@bufbuild/protobuf";
import {
  Code,
  ConnectError,
  createContextKey,
  createContextValues,
  type HandlerContext,
  type Interceptor,
} from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { ReadingSchema, WaterBedResponseSchema } from "../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { within } from "../../support/deadline.ts";
import { callings, greenhouseClient, startGreenhouse } from "../../support/greenhouse.ts";

const noteKey = createContextKey("none");

/** Fields that would break the answer they were copied to. */
const copied = [
  { name: "connection", value: "close" },
  { name: "content-length", value: "5" },
  { name: "transfer-encoding", value: "gzip" },
  { name: "keep-alive", value: "timeout=5" },
  { name: "upgrade", value: "h2c" },
  { name: "te", value: "gzip" },
  { name: "trailer", value: "x" },
  { name: "x-control", value: "a\u0001b" },
];

/** Waits until a signal has aborted, and returns why. */
async function reasonOf(signal: AbortSignal): Promise<unknown> {
  const aborted = new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
  if (!signal.aborted) await within(aborted, "the signal of a call");
  return signal.reason;
}

/** The error that a call ends with. */
async function errorOf(call: Promise<unknown>): Promise<ConnectError> {
  const error: unknown = await within(
    call.then(
      () => undefined,
      (reason: unknown) => reason,
    ),
    "the end of a call",
  );
  if (error instanceof ConnectError) return error;
  throw new Error("the call did not fail as it should", { cause: error });
}

describe.each(callings)("a unary call by $name", (calling) => {
  const start = (
    implementation: Parameters<typeof startGreenhouse>[0],
    options?: Parameters<typeof startGreenhouse>[1],
  ) => startGreenhouse(implementation, options, calling.listen);

  describe("shows its handler", () => {
    test("a context that can be taken apart", async () => {
      await using greenhouse = await start({
        waterBed: ({ bed }, context) => {
          const { method, service, protocolName, requestMethod, url, timeoutMs, values, ...rest } = context;
          const { signal, requestHeader, responseHeader, responseTrailer } = rest;
          responseHeader.set("x-header", requestHeader.get("x-sent") ?? "");
          responseTrailer.set("x-trailer", "last");
          const left = timeoutMs() ?? 0;
          const told = [method.name, service.typeName, requestMethod, new URL(url).pathname, values.get(noteKey)];
          const known = [protocolName.length > 0, signal.aborted, left > 10_000 && left <= 20_000];
          return { bed, note: [...told, ...known].join(" ") };
        },
      });
      const seen: Record<string, Headers> = {};
      const answer = await greenhouseClient(calling, greenhouse.address).waterBed(
        { bed: 7n },
        {
          headers: { "x-sent": "by the client" },
          timeoutMs: 20_000,
          onHeader: (header) => (seen["header"] = header),
          onTrailer: (trailer) => (seen["trailer"] = trailer),
        },
      );
      const path = "/greenhouse.v1.GreenhouseService/WaterBed";
      expect(answer.note).toBe(`WaterBed greenhouse.v1.GreenhouseService POST ${path} none true false true`);
      expect(seen["header"]?.get("x-header")).toBe("by the client");
      expect(seen["trailer"]?.get("x-trailer")).toBe("last");
    });

    test("binary metadata and values that were sent twice", async () => {
      await using greenhouse = await start({
        waterBed: (_, { requestHeader, responseHeader, responseTrailer }) => {
          responseHeader.append("x-twice", "a");
          responseHeader.append("x-twice", "b");
          responseTrailer.set("x-bytes-bin", requestHeader.get("x-bytes-bin") ?? "");
          return { note: requestHeader.get("x-twice") ?? "" };
        },
      });
      const headers = new Headers([
        ["x-twice", "1"],
        ["x-twice", "2"],
        ["x-bytes-bin", "AAEC/w"],
      ]);
      const seen: string[] = [];
      const answer = await greenhouseClient(calling, greenhouse.address).waterBed(
        {},
        {
          headers,
          onHeader: (header) => seen.push(header.get("x-twice") ?? ""),
          onTrailer: (trailer) => seen.push(trailer.get("x-bytes-bin") ?? ""),
        },
      );
      expect(answer.note).toBe("1, 2");
      expect(seen).toEqual(["a, b", "AAEC/w"]);
    });

    test.each<{ name: string; interceptor: Interceptor; want: string }>([
      {
        name: "spreads its request",
        interceptor: (next) => (request) => next({ ...request }),
        want: "sent none false",
      },
      {
        name: "changes the header in place",
        interceptor: (next) => (request) => {
          request.header.set("x-sent", "changed");
          return next(request);
        },
        want: "changed none false",
      },
      {
        name: "puts another header in its place",
        interceptor: (next) => (request) => next({ ...request, header: new Headers({ "x-sent": "replaced" }) }),
        want: "replaced none false",
      },
      {
        name: "sets a context value",
        interceptor: (next) => (request) => {
          request.contextValues.set(noteKey, "set");
          return next(request);
        },
        want: "sent set false",
      },
      {
        name: "puts other context values in their place",
        interceptor: (next) => (request) =>
          next({ ...request, contextValues: createContextValues().set(noteKey, "replaced") }),
        want: "sent replaced false",
      },
      {
        name: "puts another signal in its place",
        interceptor: (next) => (request) => next({ ...request, signal: otherSignal }),
        want: "sent none true",
      },
      {
        name: "calls twice and takes the second answer",
        interceptor: (next) => async (request) => {
          await next(request);
          request.contextValues.set(noteKey, "again");
          return await next(request);
        },
        want: "sent again false",
      },
    ])("what an interceptor makes of it that $name", async ({ interceptor, want }) => {
      await using greenhouse = await start(
        {
          waterBed: (_, { requestHeader, values, signal }) => ({
            note: `${requestHeader.get("x-sent") ?? ""} ${values.get(noteKey)} ${String(signal === otherSignal)}`,
          }),
        },
        { interceptors: [interceptor] },
      );
      const client = greenhouseClient(calling, greenhouse.address);
      const answer = await client.waterBed({}, { headers: { "x-sent": "sent" } });
      expect(answer.note).toBe(want);
    });

    test("the message that an interceptor put in the place of its own", async () => {
      await using greenhouse = await start({ waterBed: ({ bed }) => ({ bed }) }, { interceptors: [changeBed] });
      expect(await greenhouseClient(calling, greenhouse.address).waterBed({ bed: 7n })).toMatchObject({ bed: 8n });
    });
  });

  describe("is answered with what an interceptor makes of its response", () => {
    test("another header, trailer and message", async () => {
      await using greenhouse = await start(
        {
          waterBed: (_, { responseHeader }) => {
            responseHeader.set("x-first", "lost");
            return { note: "first" };
          },
        },
        { interceptors: [respond] },
      );
      const seen: unknown[] = [];
      const answer = await greenhouseClient(calling, greenhouse.address).waterBed(
        {},
        {
          onHeader: (header) => seen.push(header.get("x-header"), header.get("x-first")),
          onTrailer: (trailer) => seen.push(trailer.get("x-trailer")),
        },
      );
      expect(answer.note).toBe("replaced");
      expect(seen).toEqual(["replaced", null, "replaced"]);
    });

    test("a response of its own, without a handler", async () => {
      let ran = false;
      await using greenhouse = await start(
        {
          waterBed: () => {
            ran = true;
            return {};
          },
        },
        { interceptors: [answerItself] },
      );
      expect((await greenhouseClient(calling, greenhouse.address).waterBed({})).note).toBe("cached");
      expect(ran).toBe(false);
    });

    test("metadata of an error that it throws", async () => {
      await using greenhouse = await start({}, { interceptors: [refuse] });
      const error = await errorOf(greenhouseClient(calling, greenhouse.address).waterBed({}));
      expect(error).toMatchObject({ code: Code.FailedPrecondition, rawMessage: "no more water" });
      expect(error.metadata.get("x-tank")).toBe("empty");
    });

    test("an internal error when it passes on a request that it made up", async () => {
      await using greenhouse = await start({ waterBed: () => ({}) }, { interceptors: [makeUp] });
      expect(await errorOf(greenhouseClient(calling, greenhouse.address).waterBed({}))).toMatchObject({
        code: Code.Internal,
      });
    });

    test.each([
      { name: "null", returned: "null" },
      { name: "an empty object", returned: "{}" },
      { name: "a number", returned: "5" },
    ])("an internal error when it returns $name", async ({ returned }) => {
      // What JSON.parse returns has no type to hold it.
      const untyped: Interceptor = () => () => JSON.parse(returned);
      await using greenhouse = await start({ waterBed: () => ({}) }, { interceptors: [untyped] });
      const error = await errorOf(greenhouseClient(calling, greenhouse.address).waterBed({}));
      expect(error.code).toBe(Code.Internal);
    });

    test("interceptors run in the order they are listed", async () => {
      const order: string[] = [];
      const named =
        (name: string): Interceptor =>
        (next) =>
        async (request) => {
          order.push(name);
          const response = await next(request);
          order.push(`${name} after`);
          return response;
        };
      await using greenhouse = await start({ waterBed: () => ({}) }, { interceptors: [named("a"), named("b")] });
      await greenhouseClient(calling, greenhouse.address).waterBed({});
      expect(order).toEqual(["a", "b", "b after", "a after"]);
    });
  });

  describe("aborts its signal", () => {
    test("when it has been answered", async () => {
      let signal: AbortSignal | undefined;
      await using greenhouse = await start({
        waterBed: (_, context) => {
          ({ signal } = context);
          expect(signal.aborted).toBe(false);
          return {};
        },
      });
      await greenhouseClient(calling, greenhouse.address).waterBed({});
      await greenhouse.answered(1);
      expect(signal?.aborted).toBe(true);
    });

    test("when its signal is first looked at after the answer", async () => {
      let context: HandlerContext | undefined;
      await using greenhouse = await start({
        waterBed: (_, given) => {
          context = given;
          return {};
        },
      });
      await greenhouseClient(calling, greenhouse.address).waterBed({});
      await greenhouse.answered(1);
      expect(context?.signal.aborted).toBe(true);
    });

    test("at its deadline, which it is answered with", async () => {
      let reason: unknown;
      await using greenhouse = await start({
        waterBed: async (_, { signal }) => {
          reason = await reasonOf(signal);
          throw reason;
        },
      });
      // The clock of the client does not run.
      const headers = { "connect-timeout-ms": "30", "grpc-timeout": "30m" };
      const error = await errorOf(greenhouseClient(calling, greenhouse.address).waterBed({}, { headers }));
      expect(error.code).toBe(Code.DeadlineExceeded);
      expect((await greenhouse.answered(1)).error?.code).toBe(Code.DeadlineExceeded);
      expect(reason).toMatchObject({ code: Code.DeadlineExceeded });
    });

    test("when the client cancels", async () => {
      const controller = new AbortController();
      const ended = Promise.withResolvers<unknown>();
      await using greenhouse = await start({
        waterBed: async (_, { signal }) => {
          controller.abort();
          ended.resolve(await reasonOf(signal));
          return {};
        },
      });
      const call = greenhouseClient(calling, greenhouse.address).waterBed({}, { signal: controller.signal });
      expect((await errorOf(call)).code).toBe(Code.Canceled);
      expect(await within(ended.promise, "the end of the call")).toMatchObject({ code: Code.Canceled });
      expect((await greenhouse.answered(1)).error?.code).toBe(Code.Canceled);
    });

    test("when the server shuts down, with its reason", async () => {
      const shutdown = new AbortController();
      await using greenhouse = await start(
        {
          waterBed: async (_, { signal }) => {
            shutdown.abort(new ConnectError("closing time", Code.Unavailable));
            throw await reasonOf(signal);
          },
        },
        { shutdownSignal: shutdown.signal },
      );
      const client = greenhouseClient(calling, greenhouse.address);
      const error = await errorOf(client.waterBed({}));
      expect(error).toMatchObject({ code: Code.Unavailable, rawMessage: "closing time" });
      // From now on calls find it aborted.
      expect((await errorOf(client.waterBed({}))).code).toBe(Code.Unavailable);
    });
  });

  describe("that is cancelled before its handler ran", () => {
    test("does not run it", async () => {
      let ran = false;
      const controller = new AbortController();
      const passed = Promise.withResolvers<void>();
      const slow: Interceptor = (next) => async (request) => {
        controller.abort();
        await reasonOf(request.signal);
        passed.resolve();
        return await next(request);
      };
      await using greenhouse = await start(
        {
          waterBed: () => {
            ran = true;
            return {};
          },
        },
        { interceptors: [slow] },
      );
      await errorOf(greenhouseClient(calling, greenhouse.address).waterBed({}, { signal: controller.signal }));
      await within(passed.promise, "the interceptor");
      await nextTurn();
      expect(ran).toBe(false);
    });

    test("does not run it at its deadline either", async () => {
      let ran = false;
      const passed = Promise.withResolvers<void>();
      const slow: Interceptor = (next) => async (request) => {
        await reasonOf(request.signal);
        passed.resolve();
        return await next({ ...request });
      };
      await using greenhouse = await start(
        {
          waterBed: () => {
            ran = true;
            return {};
          },
        },
        { interceptors: [slow] },
      );
      const error = await errorOf(greenhouseClient(calling, greenhouse.address).waterBed({}, { timeoutMs: 30 }));
      expect(error.code).toBe(Code.DeadlineExceeded);
      await within(passed.promise, "the interceptor");
      await nextTurn();
      expect(ran).toBe(false);
    });
  });

  describe("whose handler", () => {
    test.each(copied)(
      "copies the field $name: $value from some other answer is answered without it",
      async ({ name, value }) => {
        const copy = ({ responseHeader, responseTrailer }: HandlerContext): void => {
          for (const fields of [responseHeader, responseTrailer]) fields.set(name, value);
        };
        await using greenhouse = await start({
          waterBed: (_, context) => {
            copy(context);
            return { note: "watered" };
          },
          getReading: () => {
            throw new ConnectError("as asked", Code.NotFound, { [name]: value });
          },
          async *watchReadings(_, context) {
            copy(context);
            yield { sensor: "one" };
          },
        });
        const client = greenhouseClient(calling, greenhouse.address);
        expect((await within(client.waterBed({}), "an answer")).note).toBe("watered");
        expect(await errorOf(client.getReading({}))).toMatchObject({ code: Code.NotFound, rawMessage: "as asked" });
        const sensors: string[] = [];
        for await (const { sensor } of client.watchReadings({})) sensors.push(sensor);
        expect(sensors).toEqual(["one"]);
      },
    );

    test.each([
      { name: "throws a string", thrown: "secret" },
      { name: "throws null", thrown: null },
      { name: "throws undefined", thrown: undefined },
      { name: "throws an Error", thrown: new Error("secret") },
      { name: "throws an Error with lone surrogates", thrown: new Error("\ud800 secret") },
      { name: "throws an object that cannot be looked at", thrown: unreadable() },
    ])("$name is answered as an internal error without its text", async ({ thrown }) => {
      await using greenhouse = await start({
        waterBed: () => {
          throw thrown;
        },
        getReading: () => Promise.reject(thrown),
      });
      const client = greenhouseClient(calling, greenhouse.address);
      for (const call of [client.waterBed({}), client.getReading({})]) {
        expect(await errorOf(call)).toMatchObject({ code: Code.Internal, rawMessage: "internal error" });
      }
    });

    test.each([
      { name: "text outside of ASCII", message: "jeden 🌱 ä%\n", want: "jeden 🌱 ä%\n" },
      { name: "lone surrogates", message: "a\ud800b", want: "a\ufffdb" },
      { name: "no text", message: "", want: "" },
    ])("throws a ConnectError with $name is answered with it", async ({ message, want }) => {
      await using greenhouse = await start({
        waterBed: () => {
          throw new ConnectError(message, Code.ResourceExhausted, { "x-tank": "empty" }, [
            { desc: ReadingSchema, value: { sensor: "tank" } },
          ]);
        },
      });
      const error = await errorOf(greenhouseClient(calling, greenhouse.address).waterBed({}));
      expect(error).toMatchObject({ code: Code.ResourceExhausted, rawMessage: want });
      expect(error.metadata.get("x-tank")).toBe("empty");
    });

    test("throws a ConnectError with details is answered with them", async () => {
      await using greenhouse = await start({
        waterBed: () => {
          const details = [{ desc: ReadingSchema, value: { sensor: "tank", degreesCelsius: 4.5 } }];
          throw new ConnectError("no", Code.ResourceExhausted, undefined, details);
        },
      });
      const error = await errorOf(greenhouseClient(calling, greenhouse.address).waterBed({}));
      expect(error.findDetails(ReadingSchema)).toMatchObject([{ sensor: "tank", degreesCelsius: 4.5 }]);
    });

    test("never answers is answered at the deadline of the client", async () => {
      await using greenhouse = await start({ waterBed: () => new Promise(() => {}) });
      // The clock of the client does not run.
      const headers = { "connect-timeout-ms": "30", "grpc-timeout": "30m" };
      const error = await errorOf(greenhouseClient(calling, greenhouse.address).waterBed({}, { headers }));
      expect(error.code).toBe(Code.DeadlineExceeded);
      expect((await greenhouse.answered(1)).error?.code).toBe(Code.DeadlineExceeded);
    });

    test("never answers is answered at the deadline that the server has for those who name none", async () => {
      await using greenhouse = await start(
        { waterBed: () => new Promise(() => {}) },
        { limits: { defaultTimeoutMs: 30 } },
      );
      const error = await errorOf(greenhouseClient(calling, greenhouse.address).waterBed({}));
      expect(error.code).toBe(Code.DeadlineExceeded);
    });

    test("answers after the deadline changes nothing", async () => {
      const late = Promise.withResolvers<Record<string, never>>();
      await using greenhouse = await start({ waterBed: () => late.promise, getReading: () => ({ sensor: "s" }) });
      const client = greenhouseClient(calling, greenhouse.address);
      expect((await errorOf(client.waterBed({}, { timeoutMs: 30 }))).code).toBe(Code.DeadlineExceeded);
      late.resolve({});
      expect(await client.getReading({})).toMatchObject({ sensor: "s" });
      await greenhouse.answered(2);
      expect(greenhouse.answers).toHaveLength(2);
    });

    test("answers with what cannot be serialized is answered as an internal error", async () => {
      await using greenhouse = await start({
        waterBed: () => ({ liters: 2 ** 40 }),
      });
      expect((await errorOf(greenhouseClient(calling, greenhouse.address).waterBed({}))).code).toBe(Code.Internal);
    });
  });

  describe("with a request gate", () => {
    test("is refused before its message is read", async () => {
      const seen: string[] = [];
      await using greenhouse = await start(
        {
          waterBed: () => {
            seen.push("handler");
            return {};
          },
        },
        {
          readMaxBytes: 10,
          requestGate: ({ requestHeader, responseHeader }) => {
            seen.push(requestHeader.get("x-sent") ?? "");
            responseHeader.set("x-gate", "closed");
            throw new ConnectError("not now", Code.Unavailable);
          },
        },
      );
      const client = greenhouseClient(calling, greenhouse.address);
      const call = client.waterBed({ note: "more than ten bytes" }, { headers: { "x-sent": "sent" } });
      const error = await errorOf(call);
      expect(error).toMatchObject({ code: Code.Unavailable, rawMessage: "not now" });
      expect(error.metadata.get("x-gate")).toBe("closed");
      expect(seen).toEqual(["sent"]);
    });

    test.each([
      { name: "at once", wait: undefined },
      { name: "later", wait: nextTurn },
    ])("that lets it pass $name has its context values seen by interceptors and handler", async ({ wait }) => {
      const seen: string[] = [];
      await using greenhouse = await start(
        { waterBed: (_, { values }) => ({ note: values.get(noteKey) }) },
        {
          requestGate: (context) => {
            context.values.set(noteKey, "from the gate");
            return wait?.().then(() => undefined);
          },
          interceptors: [
            (next) => (request) => {
              seen.push(request.contextValues.get(noteKey));
              return next(request);
            },
          ],
        },
      );
      expect((await greenhouseClient(calling, greenhouse.address).waterBed({})).note).toBe("from the gate");
      expect(seen).toEqual(["from the gate"]);
    });
  });
});

const respond: Interceptor = (next) => async (request) => {
  const response = await next(request);
  if (response.stream) return response;
  const message = create(WaterBedResponseSchema, { note: "replaced" });
  const header = new Headers({ "x-header": "replaced" });
  return { ...response, message, header, trailer: new Headers({ "x-trailer": "replaced" }) };
};

const makeUp: Interceptor = (next) => (request) => {
  if (request.stream) return next(request);
  const { service, method, requestMethod, url, signal, header, contextValues, message } = request;
  return next({ stream: false, service, method, requestMethod, url, signal, header, contextValues, message });
};

const changeBed: Interceptor = (next) => (request) =>
  request.stream ? next(request) : next({ ...request, message: Object.assign(request.message, { bed: 8n }) });

const answerItself: Interceptor = () => async (request) => {
  if (request.stream) throw new Error("not a stream");
  const { service, method } = request;
  const message = create(WaterBedResponseSchema, { note: "cached" });
  return { stream: false, service, method, header: new Headers(), trailer: new Headers(), message };
};

const refuse: Interceptor = () => () => {
  throw new ConnectError("no more water", Code.FailedPrecondition, { "x-tank": "empty" });
};

const otherSignal = new AbortController().signal;

function unreadable(): unknown {
  return new Proxy(
    {},
    {
      get() {
        throw new Error("secret");
      },
    },
  );
}
