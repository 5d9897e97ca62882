import { create } from "@bufbuild/protobuf";
import { Code, ConnectError, createContextKey, createContextValues, type Interceptor } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { WaterBedResponseSchema } from "../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { CallValues } from "../../src/serve/call-view.ts";
import { callings, errorOf, starterFor, waysFor } from "@protoport/testing";

type Handlers = Parameters<ReturnType<typeof starterFor>>[0];
const noteKey = createContextKey("none");

describe.each(waysFor(callings))("a unary call by $name", (calling) => {
  const start = starterFor(calling);

  describe("the handler", () => {
    test("gets a context that can be destructured", async () => {
      await using greenhouse = await start({
        waterBed: ({ bed }, context) => {
          const { method, service, protocolName, requestMethod, url, timeoutMs, values, ...rest } = context;
          rest.responseHeader.set("x-header", rest.requestHeader.get("x-sent") ?? "");
          rest.responseTrailer.set("x-trailer", "last");
          const remainingMs = timeoutMs() ?? 0;
          const reported = [method.name, service.typeName, requestMethod, new URL(url).pathname, values.get(noteKey)];
          const known = [protocolName.length > 0, rest.signal.aborted, remainingMs > 10_000 && remainingMs <= 20_000];
          return { bed, note: [...reported, ...known].join(" ") };
        },
      });
      const received: Record<string, Headers> = {};
      const response = await greenhouse.client.waterBed(
        { bed: 7n },
        {
          headers: { "x-sent": "by the client" },
          timeoutMs: 20_000,
          onHeader: (header) => (received["header"] = header),
          onTrailer: (trailer) => (received["trailer"] = trailer),
        },
      );
      const path = "/greenhouse.v1.GreenhouseService/WaterBed";
      expect(response.note).toBe(`WaterBed greenhouse.v1.GreenhouseService POST ${path} none true false true`);
      expect(received["header"]?.get("x-header")).toBe("by the client");
      expect(received["trailer"]?.get("x-trailer")).toBe("last");
    });

    test("gets binary metadata and repeated values", async () => {
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
      const received: string[] = [];
      const onHeader = (header: Headers): number => received.push(header.get("x-twice") ?? "");
      const onTrailer = (trailer: Headers): number => received.push(trailer.get("x-bytes-bin") ?? "");
      const response = await greenhouse.client.waterBed({}, { headers, onHeader, onTrailer });
      expect([response.note, received]).toEqual(["1, 2", ["a, b", "AAEC/w"]]);
    });

    test.each<[name: string, interceptor: Interceptor, want: string]>(
      // oxfmt-ignore
      [
        ["a copy of the request", (next) => (request) => next({ ...request }), "sent none false"],
        ["a header changed in place",
          (next) => async (request) => (request.header.set("x-sent", "changed"), await next(request)),
          "changed none false"],
        ["a new header", (next) => (request) => next({ ...request, header: new Headers({ "x-sent": "replaced" }) }),
          "replaced none false"],
        ["a context value",
          (next) => async (request) => (request.contextValues.set(noteKey, "set"), await next(request)),
          "sent set false"],
        ["new context values",
          (next) => (request) => next({ ...request, contextValues: createContextValues().set(noteKey, "replaced") }),
          "sent replaced false"],
        ["a new signal", (next) => (request) => next({ ...request, signal: otherSignal }), "sent none true"],
        ["a second call", (next) => async (request) => {
            await next(request);
            request.contextValues.set(noteKey, "again");
            return await next(request);
          }, "sent again false"],
      ],
    )("gets %s from an interceptor", async (_name, interceptor, want) => {
      const handlers: Handlers = {
        waterBed: (_, { requestHeader, values, signal }) => ({
          note: `${requestHeader.get("x-sent") ?? ""} ${values.get(noteKey)} ${String(signal === otherSignal)}`,
        }),
      };
      await using greenhouse = await start(handlers, { interceptors: [interceptor] });
      expect((await greenhouse.client.waterBed({}, { headers: { "x-sent": "sent" } })).note).toBe(want);
    });

    test("gets a changed message from an interceptor", async () => {
      await using greenhouse = await start({ waterBed: ({ bed }) => ({ bed }) }, { interceptors: [changeBed] });
      expect(await greenhouse.client.waterBed({ bed: 7n })).toMatchObject({ bed: 8n });
    });
  });

  describe("an interceptor", () => {
    test("can replace the response's header, trailer and message", async () => {
      const handlers: Handlers = {
        waterBed: (_, { responseHeader }) => (responseHeader.set("x-first", "lost"), { note: "first" }),
      };
      await using greenhouse = await start(handlers, { interceptors: [respond] });
      const received: unknown[] = [];
      const onHeader = (header: Headers): number => received.push(header.get("x-header"), header.get("x-first"));
      const onTrailer = (trailer: Headers): number => received.push(trailer.get("x-trailer"));
      const response = await greenhouse.client.waterBed({}, { onHeader, onTrailer });
      expect([response.note, received]).toEqual(["replaced", ["replaced", null, "replaced"]]);
    });

    test("can respond without calling the handler", async () => {
      let ran = false;
      const handlers = { waterBed: () => ((ran = true), {}) };
      await using greenhouse = await start(handlers, { interceptors: [answerItself] });
      expect([(await greenhouse.client.waterBed({})).note, ran]).toEqual(["cached", false]);
    });

    test("can throw an error with metadata", async () => {
      await using greenhouse = await start({}, { interceptors: [refuse] });
      const error = await errorOf(greenhouse.client.waterBed({}));
      expect(error).toMatchObject({ code: Code.FailedPrecondition, rawMessage: "no more water" });
      expect(error.metadata.get("x-tank")).toBe("empty");
    });

    test("that creates a request instead of copying it causes an internal error", async () => {
      await using greenhouse = await start({ waterBed: () => ({}) }, { interceptors: [makeUp] });
      expect(await errorOf(greenhouse.client.waterBed({}))).toMatchObject({ code: Code.Internal });
    });

    test.each([
      { name: "null", returned: "null" },
      { name: "an empty object", returned: "{}" },
      { name: "a number", returned: "5" },
    ])("that returns $name causes an internal error", async ({ returned }) => {
      // JSON.parse returns any, which the compiler does not check.
      const untyped: Interceptor = () => () => JSON.parse(returned);
      await using greenhouse = await start({ waterBed: () => ({}) }, { interceptors: [untyped] });
      expect((await errorOf(greenhouse.client.waterBed({}))).code).toBe(Code.Internal);
    });

    test("wraps the interceptors listed after it", async () => {
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
      await greenhouse.client.waterBed({});
      expect(order).toEqual(["a", "b", "b after", "a after"]);
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
const color = createContextKey("green", { description: "color" });
const twin = createContextKey("red", { description: "color" });

test("CallValues.get() returns a key's default before set() and after delete()", () => {
  const values = new CallValues();
  const results = [values.get(color)];
  results.push(values.set(color, "blue").get(color), values.get(twin));
  results.push(values.delete(color).get(color));
  expect(results).toEqual(["green", "blue", "red", "green"]);
});

test("CallValues.get() returns undefined for a key that is set to undefined", () => {
  const key = createContextKey<string | undefined>("green");
  expect(new CallValues().set(key, undefined).get(key)).toBeUndefined();
});
