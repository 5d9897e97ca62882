import { expect, test } from "vitest";
import { exchangeHttp2 } from "@protoport/testing/http";
import { decodeEnvelopes, encodeEnvelope } from "../../../testing/src/gateway/envelope.ts";
import { startKitchenSink, type TestGateway } from "../../../testing/src/gateway/kitchen-sink.ts";
import { shared } from "../../../testing/src/shared.ts";

// The strict reader, which replaces Connect's codec in streams, must not lose any fields.

const gateway = shared(() => startKitchenSink());
const exchangeStream = async (...messages: readonly string[]): Promise<unknown[]> =>
  await exchangeStreamWith(gateway, ...messages);

async function exchangeStreamWith({ address }: TestGateway, ...messages: readonly string[]): Promise<unknown[]> {
  const { body } = await exchangeHttp2(address, {
    httpMethod: "POST",
    path: "/kitchensink.v1.LegacySink/KeepAll",
    header: [["content-type", "application/connect+json"]],
    body: Buffer.concat(messages.map((json) => encodeEnvelope(0, Buffer.from(json)))),
  });
  return decodeEnvelopes(body).map(({ bytes }): unknown => JSON.parse(bytes.toString()));
}

test.each<object>([
  { name: "a", "[kitchensink.v1.note]": "b", "[kitchensink.v1.codes]": ["9007199254740993"] },
  { name: "a", any: { "@type": "type.googleapis.com/kitchensink.v1.Legacy", name: "b" } },
])("the JSON message %j is preserved in a stream", async (message) => {
  expect(await exchangeStream(JSON.stringify(message), '{"name":"c"}')).toEqual([message, { name: "c" }, {}]);
});

test.each([
  { json: '{"number":7}', message: "name: is required" },
  { json: '{"name":"a","[kitchensink.v1.note]":1}', message: "[kitchensink.v1.note]: must be a string" },
])("a JSON stream fails at $json ($message)", async ({ json, message }) => {
  const error = { code: "invalid_argument", message };
  expect(await exchangeStream('{"name":"c"}', json)).toEqual([{ name: "c" }, { error }]);
});

test.each([
  { canonicalIntegers: false, want: { name: "a", "[kitchensink.v1.codes]": ["7"] } },
  {
    canonicalIntegers: true,
    want: { error: { code: "invalid_argument", message: expect.stringMatching(/"7\.0" is not an int64/) } },
  },
])("the option canonicalIntegers $canonicalIntegers applies to JSON streams", async ({ want, ...json }) => {
  await using own = await startKitchenSink({ rest: { json } });
  const [first] = await exchangeStreamWith(own, '{"name":"a","[kitchensink.v1.codes]":["7.0"]}');
  expect(first).toEqual(want);
});
