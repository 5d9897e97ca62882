import { setImmediate as nextTurn } from "node:timers/promises";
import { Code, ConnectError, createContextKey, type HandlerContext, type Interceptor } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { ReadingSchema } from "../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { abortReasonOf } from "../../../src/gateway/index.ts";
import { errorOf, reasonOf } from "../../support/call-end.ts";
import { within } from "../../support/deadline.ts";
import { callings, greenhouseClient, startGreenhouse } from "../../support/greenhouse.ts";

const noteKey = createContextKey("none");

/** Asks until there is an answer. */
async function askedAgain(context: HandlerContext): Promise<unknown> {
  for (;;) {
    const reason = abortReasonOf(context);
    if (reason !== undefined) return reason;
    await nextTurn();
  }
}

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

describe.each(callings)("a unary call by $name", (calling) => {
  const start = (
    implementation: Parameters<typeof startGreenhouse>[0],
    options?: Parameters<typeof startGreenhouse>[1],
  ) => startGreenhouse(implementation, options, calling.listen);

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

  describe("says why it is aborted without a signal to listen to", () => {
    test("when it has been answered, and not before", async () => {
      let context: HandlerContext | undefined;
      await using greenhouse = await start({
        waterBed: (_, given) => {
          context = given;
          return { note: String(abortReasonOf(given)) };
        },
      });
      expect((await greenhouseClient(calling, greenhouse.address).waterBed({})).note).toBe("undefined");
      await greenhouse.answered(1);
      expect(context && abortReasonOf(context)).toMatchObject({ name: "AbortError" });
      expect(context && abortReasonOf(context)).toBe(context?.signal.reason);
    });

    test("when the client cancels", async () => {
      const controller = new AbortController();
      const ended = Promise.withResolvers<readonly unknown[]>();
      await using greenhouse = await start({
        waterBed: async (_, context) => {
          controller.abort();
          const reason = await askedAgain(context);
          ended.resolve([reason, context.signal.reason]);
          return {};
        },
      });
      await errorOf(greenhouseClient(calling, greenhouse.address).waterBed({}, { signal: controller.signal }));
      const [asked, ofTheSignal] = await within(ended.promise, "the end of the call");
      expect(asked).toMatchObject({ code: Code.Canceled });
      expect(asked).toBe(ofTheSignal);
    });

    test("at its deadline", async () => {
      const ended = Promise.withResolvers<readonly unknown[]>();
      await using greenhouse = await start({
        waterBed: async (_, context) => {
          const reason = await askedAgain(context);
          ended.resolve([reason, context.signal.reason]);
          return {};
        },
      });
      const headers = { "connect-timeout-ms": "30", "grpc-timeout": "30m" };
      await errorOf(greenhouseClient(calling, greenhouse.address).waterBed({}, { headers }));
      const [asked, ofTheSignal] = await within(ended.promise, "the deadline");
      expect(asked).toMatchObject({ code: Code.DeadlineExceeded });
      expect(asked).toBe(ofTheSignal);
    });

    test("when the server shuts down", async () => {
      const shutdown = new AbortController();
      await using greenhouse = await start(
        {
          waterBed: (_, context) => {
            shutdown.abort("closing time");
            return { note: `${String(abortReasonOf(context))}, ${String(context.signal.reason)}` };
          },
        },
        { shutdownSignal: shutdown.signal },
      );
      const answer = await greenhouseClient(calling, greenhouse.address).waterBed({});
      expect(answer.note).toBe("closing time, closing time");
    });

    test.each<{ name: string; derive: (context: HandlerContext, signal: AbortSignal) => HandlerContext }>([
      { name: "a copy", derive: (context, signal) => ({ ...context, signal }) },
      { name: "an heir", derive: (context, signal) => Object.create(context, { signal: { value: signal } }) },
    ])("by the signal of $name of its context that has one of its own", async ({ derive }) => {
      const own = new AbortController();
      await using greenhouse = await start({
        waterBed: (_, context) => {
          const derived = derive(context, own.signal);
          const before = abortReasonOf(derived);
          own.abort("enough");
          return { note: `${String(before)} ${String(abortReasonOf(derived))}` };
        },
      });
      expect((await greenhouseClient(calling, greenhouse.address).waterBed({})).note).toBe("undefined enough");
    });

    test("by the signal that an interceptor has put in place of its own", async () => {
      const own = new AbortController();
      const replace: Interceptor = (next) => (request) => next({ ...request, signal: own.signal });
      await using greenhouse = await start(
        {
          waterBed: (_, context) => {
            const before = abortReasonOf(context);
            own.abort("enough");
            return { note: `${String(before)} ${String(abortReasonOf(context))}` };
          },
        },
        { interceptors: [replace] },
      );
      expect((await greenhouseClient(calling, greenhouse.address).waterBed({})).note).toBe("undefined enough");
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
