import { fromJson } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { GreenhouseService } from "../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { EchoSchema, KitchenSink } from "../../../testing/src/gen/kitchensink/v1/kitchen_sink_pb.ts";
import { createGateway } from "../../src/index.ts";

// With partialResponses, requests select response fields (AIP-157).

// oxfmt-ignore
const echo = { rpc: "Query",
  sink: { fInt64: "9007199254740993", fDouble: 0.1, fString: "a", tags: ["x", "y"],
    nesteds: [{ text: "one", number: "1", inner: { text: "in" } }, { number: "2" }],
    labels: { color: "red", "a-b": "1" }, nestedById: { "1": { text: "one", number: "1" }, "2": { text: "two" } },
    nested: { text: "n", number: "3", flag: true, inner: { text: "deep", tags: ["t"] } }, time: "2026-01-02T03:04:05Z",
    struct: { a: { b: 1, c: [{ d: 2, e: 3 }] }, f: null }, value: { k: 1, l: 2 }, customName: "odd" },
};

const gateway = createGateway({
  rest: {
    profile: "google",
    rules: [
      { selector: "greenhouse.v1.GreenhouseService.WatchReadings", pattern: { case: "get", value: "/readings" } },
      { selector: "kitchensink.v1.KitchenSink.Update", pattern: { case: "get", value: "/sink" }, responseBody: "sink" },
    ],
  },
  routes: (router) => {
    router.service(KitchenSink, {
      query: () => fromJson(EchoSchema, echo),
      update: () => fromJson(EchoSchema, echo),
      remove: () => ({}),
    });
    router.service(GreenhouseService, {
      async *watchReadings() {
        yield { sensor: "a", degreesCelsius: 1 };
        yield { sensor: "b", degreesCelsius: 2 };
      },
    });
  },
});

async function send(path: string, fieldMask?: string): Promise<Response> {
  const headers = fieldMask === undefined ? {} : { "x-goog-fieldmask": fieldMask };
  return await gateway.fetch(new Request(`http://a${path}`, { headers }));
}

const { sink } = echo;

const selections: readonly { readonly mask: string; readonly body: unknown }[] = [
  { mask: "", body: echo },
  { mask: "*", body: echo },
  { mask: "rpc", body: { rpc: "Query" } },
  { mask: "rpc,sink", body: echo },
  { mask: "rpc, sink.fString", body: { rpc: "Query", sink: { fString: "a" } } },
  { mask: "sink/f_string,sink.f_int64", body: { sink: { fInt64: sink.fInt64, fString: "a" } } },
  { mask: "sink(fDouble,tags)", body: { sink: { fDouble: 0.1, tags: ["x", "y"] } } },
  { mask: "sink(*),sink.tags", body: { sink } },
  { mask: "sink.nesteds.text", body: { sink: { nesteds: [{ text: "one" }, {}] } } },
  { mask: "sink(nested(number,inner/tags))", body: { sink: { nested: { number: "3", inner: { tags: ["t"] } } } } },
  { mask: "sink.nested,sink.nested.text", body: { sink: { nested: sink.nested } } },
  { mask: "sink.labels.a-b", body: { sink: { labels: { "a-b": "1" } } } },
  { mask: "sink.nestedById.1.text", body: { sink: { nestedById: { "1": { text: "one" } } } } },
  { mask: "sink.nested_by_id.*.text", body: { sink: { nestedById: { "1": { text: "one" }, "2": { text: "two" } } } } },
  { mask: "sink.struct.a.c.d", body: { sink: { struct: { a: { c: [{ d: 2 }] } } } } },
  { mask: "sink.value.k,sink.struct.f", body: { sink: { struct: { f: null }, value: { k: 1 } } } },
  { mask: "sink.time", body: { sink: { time: sink.time } } },
  { mask: "sink.odd_name", body: { sink: { customName: "odd" } } },
  { mask: "sink.maybeInt64", body: { sink: {} } },
];

test.each(selections)(
  'the selection "$mask" limits the response, in the query and in the header',
  async ({ mask, body }) => {
    const query = encodeURIComponent(mask);
    expect(await (await send(`/v1/query?$fields=${query}`)).json()).toEqual(body);
    expect(await (await send(`/v1/query?fields=${query}`)).json()).toEqual(body);
    expect(await (await send("/v1/query", mask)).json()).toEqual(body);
  },
);

test.each([
  { mask: "unknown", reason: 'there is no field "unknown"' },
  { mask: "sink.unknown", reason: 'there is no field "unknown"' },
  { mask: "rpc.length", reason: 'there is no field "length"' },
  { mask: "sink.time.seconds", reason: 'there is no field "seconds"' },
  { mask: "sink.*.text", reason: 'there is no field "*"' },
  { mask: "rpc,", reason: "a name is missing" },
  { mask: "sink..tags", reason: 'unexpected "."' },
  { mask: "sink(tags", reason: '")" is missing' },
  { mask: "sink(tags))", reason: 'unexpected ")"' },
  { mask: "rpc sink", reason: 'unexpected "sink"' },
])("the selection $mask is refused", async ({ mask, reason }) => {
  for (const response of [await send(`/v1/query?fields=${encodeURIComponent(mask)}`), await send("/v1/query", mask)]) {
    expect(response.status).toBe(400);
    expect(await response.text()).toContain(JSON.stringify(` is not valid: ${reason}`).slice(1, -1));
  }
});

test("a query parameter overrides the header, and $fields overrides fields", async () => {
  expect(await (await send("/v1/query?fields=rpc", "sink")).json()).toEqual({ rpc: "Query" });
  expect(await (await send("/v1/query?fields=sink&$fields=rpc", "sink")).json()).toEqual({ rpc: "Query" });
  const want = { rpc: "Query", sink: { fString: "a" } };
  expect(await (await send("/v1/query?fields=rpc&fields=sink.fString")).json()).toEqual(want);
});

test("a selection is relative to the response_body field", async () => {
  expect(await (await send("/sink?fields=fString")).json()).toEqual({ fString: "a" });
  expect((await send("/sink?fields=sink")).status).toBe(400);
});

test("a selection applies to each message of a stream", async () => {
  expect(await (await send("/readings?fields=sensor")).json()).toEqual([{ sensor: "a" }, { sensor: "b" }]);
  expect((await send("/readings?fields=none")).status).toBe(400);
});

test("a response that depends on X-Goog-FieldMask lists the field in Vary", async () => {
  for (const path of ["/v1/query", "/readings"])
    expect((await send(path)).headers.get("vary")).toContain("x-goog-fieldmask");
});

test.each(["*", "rpc,*", "*,sink.tags"])(
  "the selection %s includes all fields and does not change the response",
  async (mask) => {
    const { fetch } = createGateway({
      rest: { profile: "google" },
      routes: (router) => void router.service(KitchenSink, { query: () => ({ sink: { fDouble: -0 } }) }),
    });
    const response = await fetch(new Request(`http://a/v1/query?$fields=${mask}`));
    // JSON.stringify would write 0.
    expect(await response.text()).toBe('{"sink":{"fDouble":-0}}');
  },
);

test("a selection does not apply to an error response", async () =>
  expect(await (await send("/v1/unknown?fields=rpc")).json()).toMatchObject({ error: { code: 404 } }));
