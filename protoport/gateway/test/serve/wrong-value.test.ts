import { describe, expect, test } from "vitest";
import { GreenhouseService } from "../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { createGateway, type GatewayOptions } from "../../src/index.ts";
import { KitchenSink } from "../../../testing/src/gen/kitchensink/v1/kitchen_sink_pb.ts";
import { throws } from "../../../testing/src/callback-forms.ts";

// A response that cannot be written is reported with its procedure and field, because JavaScript does not check types.

/** Sends a request to a gateway, and returns the status and the reported fault. */
async function faultsOf(
  options: Pick<GatewayOptions, "routes" | "interceptors">,
  path: string,
  init: RequestInit = {},
): Promise<{ readonly httpStatus: number; readonly faults: readonly unknown[] }> {
  const faults: unknown[] = [];
  const selector = "greenhouse.v1.GreenhouseService.WatchReadings";
  const rules = [{ selector, pattern: { case: "get", value: "/readings" } } as const];
  const rest = { rules, ignoreUnregistered: true };
  const { fetch } = createGateway({ ...options, rest, onFault: (error) => void faults.push(error) });
  const response = await fetch(new Request(`http://a${path}`, init));
  // A stream reports its fault when it is read.
  await response.arrayBuffer().catch(() => undefined);
  return { httpStatus: response.status, faults };
}

const watchReadings = "/greenhouse.v1.GreenhouseService/WatchReadings";
const query = "the response of /kitchensink.v1.KitchenSink/Query:";

/** A handler in JavaScript may return anything. */
function returning(sink: unknown): GatewayOptions["routes"] {
  const respond = (): object => ({ sink });
  return (router) => router.service(KitchenSink, { query: respond });
}

const loop: Record<string, unknown> = { $typeName: "kitchensink.v1.Sink" };
loop["child"] = loop;

describe("the reported fault for a wrong type in a response", () => {
  test.each<{ sink: unknown; problem: string }>([
    { sink: { fString: 7 }, problem: "sink.f_string must be a string, got number" },
    { sink: { tags: [null] }, problem: "sink.tags[0] must be a string, got null" },
    { sink: { fBool: "yes" }, problem: "sink.f_bool must be a boolean, got string" },
    { sink: { fBytes: "YQ==" }, problem: "sink.f_bytes must be a Uint8Array, got string" },
    { sink: { fDouble: "1" }, problem: "sink.f_double must be a number, got string" },
    { sink: { fInt32: "1" }, problem: "sink.f_int32 must be of the type int32, got string" },
    { sink: { fInt64: 1.5 }, problem: "sink.f_int64 must be of the type int64, got number" },
    { sink: { fEnum: "COLOR_RED" }, problem: "sink.f_enum must be of the type int32, got string" },
    { sink: { tags: "a" }, problem: "sink.tags must be an array, got string" },
    { sink: { tags: ["a", 7] }, problem: "sink.tags[1] must be a string, got number" },
    { sink: { labels: 7 }, problem: "sink.labels must be an object, got number" },
    { sink: { labels: { a: "b", c: 7 } }, problem: 'sink.labels["c"] must be a string, got number' },
    { sink: { nested: { text: 7 } }, problem: "sink.nested.text must be a string, got number" },
    { sink: { nesteds: [{}, { text: 7 }] }, problem: "sink.nesteds[1].text must be a string, got number" },
    { sink: { nested: 7 }, problem: "sink.nested must be a message of the type kitchensink.v1.Nested, got number" },
    { sink: [1], problem: "sink must be a message of the type kitchensink.v1.Sink, got an array" },
    { sink: { choice: { case: "choiceText", value: 7 } }, problem: "sink.choice_text must be a string, got number" },
  ])("on REST names the field ($problem)", async ({ sink, problem }) => {
    const { httpStatus, faults } = await faultsOf({ routes: returning(sink) }, "/v1/query");
    expect(httpStatus).toBe(500);
    expect(faults).toEqual([expect.objectContaining({ message: `${query} ${problem}`, cause: expect.any(Error) })]);
  });

  test.each<{ sink: unknown; problem: string }>([
    { sink: { fInt32: 1.5 }, problem: "sink.f_int32 must be of the type int32, got number" },
    { sink: { fInt32: 2 ** 31 }, problem: "sink.f_int32 must be of the type int32, got number" },
    { sink: { fInt64: "x" }, problem: "sink.f_int64 must be of the type int64, got string" },
    { sink: { fInt64: 2n ** 63n }, problem: "sink.f_int64 must be of the type int64, got bigint" },
    { sink: { fInt32: 7n }, problem: "sink.f_int32 must be of the type int32, got bigint" },
    { sink: { fUint32: -1 }, problem: "sink.f_uint32 must be of the type uint32, got number" },
    { sink: { fInt64: 7, fBytes: "a" }, problem: "sink.f_bytes must be a Uint8Array, got string" },
  ])("in binary names the field ($problem)", async ({ sink, problem }) => {
    const init = { method: "POST", headers: { "content-type": "application/proto" }, body: new Uint8Array() };
    const path = "/kitchensink.v1.KitchenSink/Query";
    const { httpStatus, faults } = await faultsOf({ routes: returning(sink) }, path, init);
    expect([httpStatus, faults]).toEqual([500, [expect.objectContaining({ message: `${query} ${problem}` })]]);
  });

  test("in a stream names the field", async () => {
    const { faults } = await faultsOf(
      {
        routes: (router) =>
          router.service(GreenhouseService, {
            async *watchReadings() {
              yield JSON.parse('{"sensor":7}');
            },
          }),
      },
      "/readings",
    );
    const message = `the response of ${watchReadings}: sensor must be a string, got number`;
    expect(faults).toEqual([expect.objectContaining({ message })]);
  });
});

test.each<{ name: string; sink: unknown }>([
  { name: "a timestamp out of range", sink: { time: { seconds: 10n ** 15n } } },
  { name: "a message that contains itself", sink: loop },
  {
    name: "a property that cannot be read",
    sink: Object.defineProperty({ $typeName: "kitchensink.v1.Sink" }, "fString", { get: throws(new Error("not now")) }),
  },
])("the reported fault for $name is the original error", async ({ sink }) => {
  const { httpStatus, faults } = await faultsOf({ routes: returning(sink) }, "/v1/query");
  expect(httpStatus).toBe(500);
  expect(faults).toEqual([expect.objectContaining({ message: expect.not.stringContaining(query) })]);
});

describe("a streaming handler that is not a generator", () => {
  test.each<{ returned: unknown; type: string }>([
    { returned: undefined, type: "undefined" },
    { returned: [{ sensor: "a" }], type: "an array" },
    { returned: Promise.resolve(null), type: "null" },
    { returned: { sensor: "a" }, type: "object" },
  ])("is named in the reported fault if $type is returned", async ({ returned, type }) => {
    const handlers: object = { watchReadings: () => returned };
    const routes: GatewayOptions["routes"] = (router) => router.service(GreenhouseService, handlers);
    const { httpStatus, faults } = await faultsOf({ routes }, "/readings");
    expect(httpStatus).toBe(500);
    const problem = `the handler of ${watchReadings} must return an async iterable, got ${type}`;
    expect(faults).toEqual([new TypeError(`${problem}; declare it as an async generator function: async *`)]);
  });
});
