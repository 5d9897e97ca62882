import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { anyPack } from "@bufbuild/protobuf/wkt";
import { describe, expect, test } from "vitest";
import { createGateway, type RestOptions } from "../../src/index.ts";
import { KitchenSink, NestedSchema, SinkSchema } from "../../../testing/src/gen/kitchensink/v1/kitchen_sink_pb.ts";
import { kitchenSinkRegistry } from "../../../testing/src/gateway/kitchen-sink.ts";

/** Returns a response's body over REST, and over Connect, which REST options do not change. */
async function answersOf(
  sink: MessageInitShape<typeof SinkSchema>,
  rest: RestOptions,
  path = "/v1/query",
): Promise<{ readonly rest: string; readonly connect: string }> {
  const { fetch } = createGateway({
    rest,
    jsonOptions: { registry: kitchenSinkRegistry },
    routes: (router) =>
      router.service(KitchenSink, { query: () => ({ sink }), unbound: () => ({ sink }), responseNested: () => sink }),
  });
  const unbound = { method: "POST", headers: { "content-type": "application/json" }, body: "{}" };
  return {
    rest: await (await fetch(new Request(`http://a${path}`))).text(),
    connect: await (await fetch(new Request("http://a/kitchensink.v1.KitchenSink/Unbound", unbound))).text(),
  };
}

describe("the option int64Numbers", () => {
  const rest: RestOptions = { service: () => ({ int64Numbers: true }) };
  const most = 9007199254740991n;

  test.each<[name: string, want: string, sink: MessageInitShape<typeof SinkSchema>]>([
    ["small integers", '{"fInt64":7,"fUint64":7,"fSint64":-7}', { fInt64: 7n, fUint64: 7n, fSint64: -7n }],
    ["the largest safe integers", `{"fInt64":${most},"fSint64":-${most}}`, { fInt64: most, fSint64: -most }],
    ["2^53", '{"fInt64":"9007199254740992"}', { fInt64: most + 1n }],
    ["the largest uint64", '{"fUint64":"18446744073709551615"}', { fUint64: 2n ** 64n - 1n }],
    ["an integer below -2^53", '{"fInt64":"-9007199254740993"}', { fInt64: -most - 2n }],
    ["integers in a list", '{"ids":[1,"1152921504606846976"]}', { ids: [1n, 2n ** 60n] }],
    ["wrappers and JS_STRING fields", '{"wInt64":0,"longText":7}', { wInt64: 0n, longText: "7" }],
    ["an integer in a nested message", '{"nested":{"number":7}}', { nested: { number: 7n } }],
    [
      "an integer in an Any",
      '{"any":{"@type":"type.googleapis.com/kitchensink.v1.Nested","number":7}}',
      { any: anyPack(NestedSchema, create(NestedSchema, { number: 7n })) },
    ],
    ["integer map keys", '{"nestedById":{"7":{}}}', { nestedById: { "7": {} } }],
  ])("writes %s as %s in JSON", async (_name, want, sink) => {
    expect((await answersOf(sink, rest)).rest).toBe(`{"sink":${want}}`);
  });

  test.each([
    { path: "/v1/response/int64", sink: {}, want: "0" },
    { path: "/v1/response/int64", sink: { fInt64: 2n ** 53n }, want: '"9007199254740992"' },
    { path: "/v1/response/string", sink: { fString: "0" }, want: '"0"' },
  ])("writes $want for a response_body field", async ({ path, sink, want }) => {
    expect((await answersOf(sink, rest, path)).rest).toBe(want);
  });

  test("is off by default and has no effect over Connect", async () => {
    expect((await answersOf({ fInt64: 7n }, {})).rest).toBe('{"sink":{"fInt64":"7"}}');
    expect((await answersOf({ fInt64: 7n }, rest)).connect).toBe('{"sink":{"fInt64":"7"}}');
  });
});
