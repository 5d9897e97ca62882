import { create, type Message } from "@bufbuild/protobuf";
import { EmptySchema, ListValueSchema } from "@bufbuild/protobuf/wkt";
import { describe, expect, test } from "vitest";
import { GreenhouseService, type Reading } from "../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import type { RestOptions } from "../../src/index.ts";
import { createOpenApi } from "../../src/openapi/index.ts";
import { JsonValueReader } from "../../src/protocols/rest/json-value-reader.ts";
import { bodyFormatOf } from "../../src/protocols/rest/rules/body-format.ts";
import { bindingOptionsOf } from "../../src/protocols/rest/rules/rest-options.ts";
import { KitchenSink, SinkSchema } from "../../../testing/src/gen/kitchensink/v1/kitchen_sink_pb.ts";
import { serveByFetch } from "../../../testing/src/gateway/fetch-serving.ts";
import { openUpload, startGreenhouse } from "@protoport/testing";

const selector = "greenhouse.v1.GreenhouseService.RecordReadings";
// oxfmt-ignore
const rest: RestOptions = {
  service: () => ({ jsonClientStreams: true }),
  rules: [{ selector, pattern: { case: "post", value: "/readings" }, body: "*",
      additionalBindings: [{ pattern: { case: "put", value: "/degrees" }, body: "degrees_celsius" }] }],
};

/** Sends a body in pieces, and returns the received readings and the response. */
async function send(
  pieces: readonly string[],
  { type = "application/json", readMaxBytes = 1024, path = "/readings" } = {},
): Promise<{ readonly received: readonly string[]; readonly httpStatus: number; readonly message: unknown }> {
  const received: string[] = [];
  const fetch = serveByFetch(
    {
      recordReadings: async (readings: AsyncIterable<Reading>) => {
        for await (const { sensor, degreesCelsius } of readings) received.push(`${sensor}:${String(degreesCelsius)}`);
        return {};
      },
    },
    { readMaxBytes, rest },
  );
  const body = ReadableStream.from(pieces.map((piece) => new TextEncoder().encode(piece)));
  const method = path === "/readings" ? "POST" : "PUT";
  const headers = { "content-type": type };
  const response = await fetch(new Request(`http://a${path}`, { method, headers, body, duplex: "half" }));
  const { message }: { message?: unknown } = JSON.parse(await response.text());
  return { received, httpStatus: response.status, message };
}

const cut = (text: string): readonly string[] => Array.from(text);

describe("a client stream as application/json", () => {
  test.each([
    ["consecutive values", '{"sensor":"a"}{"sensor":"b"}', ["a:0", "b:0"]],
    ["values with white space around", ' {"sensor":"a"}\r\n\t{"sensor":"b"} ', ["a:0", "b:0"]],
    ["one array", '[{"sensor":"a"},{"sensor":"b"}]', ["a:0", "b:0"]],
    ["one array on several lines", '\n[\n {"sensor":"a"} ,\n {"sensor":"b"}\n]\n', ["a:0", "b:0"]],
    ["an empty array", " [ ] ", []],
    ["an empty body", "", []],
    ["only white space", " \n", []],
    ["a value on several lines", '{\n"sensor":\n"a"\n}', ["a:0"]],
    ["values with brackets and quotes in strings", '{"sensor":"}]\\"\\\\"}{"sensor":"[{"}', ['}]"\\:0', "[{:0"]],
    ["an array with non-ASCII strings", '[{"sensor":"é☂𝄞"}]', ["é☂𝄞:0"]],
  ])("with %s is accepted", async (_name, body, want) => {
    expect(await send([body])).toEqual({ received: want, httpStatus: 200, message: undefined });
    expect(await send(cut(body))).toEqual({ received: want, httpStatus: 200, message: undefined });
  });

  test.each([
    { name: "numbers", body: "1 2\n3", want: [":1", ":2", ":3"] },
    { name: "numbers in strings", body: '"1""2"3', want: [":1", ":2", ":3"] },
    { name: "an array of numbers", body: "[1,2.5,3e1]", want: [":1", ":2.5", ":30"] },
    { name: "null and a number", body: "null 1", want: [":0", ":1"] },
  ])("accepts $name if the rule's body is a scalar field", async ({ body, want }) => {
    expect(await send([body], { path: "/degrees" })).toMatchObject({ received: want, httpStatus: 200 });
    expect(await send(cut(body), { path: "/degrees" })).toMatchObject({ received: want, httpStatus: 200 });
  });

  test.each([
    { body: '[{"sensor":"a"}', received: 1, message: "message 2: the array is not closed" },
    { body: "[", received: 0, message: "message 1: the array is not closed" },
    { body: '[{"sensor":"a"},', received: 1, message: "message 2: the array is not closed" },
    { body: '[{"sensor":"a"},]', received: 1, message: "message 2: the array is not closed" },
    { body: '[{"sensor":"a"},] ', received: 1, message: "message 2: " },
    { body: '[,{"sensor":"a"}]', received: 0, message: "message 1: not valid JSON" },
    { body: '[{"sensor":"a"}{"sensor":"b"}]', received: 1, message: 'message 2: expected "," or "]" after a value' },
    { body: '[{"sensor":"a"}]{"sensor":"b"}', received: 1, message: 'message 2: expected "," or "]" after a value' },
    { body: "[],", received: 0, message: 'message 1: expected "," or "]"' },
    { body: '{"sensor":"a"},{"sensor":"b"}', received: 1, message: "message 2: not valid JSON" },
    { body: '{"sensor":"a"}]', received: 1, message: "message 2: not valid JSON" },
    { body: '{"sensor":"a"', received: 0, message: "message 1: not valid JSON" },
    { body: '{"sensor":"a"]', received: 0, message: "message 1: not valid JSON" },
    { body: "}", received: 0, message: "message 1: not valid JSON" },
    { body: "[[]]", received: 0, message: "message 1: " },
    { body: '{"sensor":"a"}{"x":1}', received: 1, message: 'message 2: unknown field "x"' },
    { body: "[".repeat(500), received: 0, message: "message 1: the array is not closed" },
    { body: `{"sensor":${"[".repeat(500)}`, received: 0, message: "message 1: sensor: must be a string" },
  ])("with the body $body is refused", async ({ body, received, message }) => {
    for (const pieces of [[body], cut(body)]) {
      const response = await send(pieces);
      const want = [400, received, expect.stringContaining(message)];
      expect([response.httpStatus, response.received.length, response.message]).toEqual(want);
    }
  });

  test("refuses a message over the limit, however the body is split", async () => {
    const long = `{"sensor":"${"x".repeat(100)}"}`;
    for (const pieces of [[long], cut(long)]) {
      const response = await send(['{"sensor":"a"}', ...pieces], { readMaxBytes: 100 });
      expect(response).toEqual({
        received: ["a:0"],
        httpStatus: 413,
        message: "message 2: the message is larger than 100 bytes; to accept it, set the server option readMaxBytes",
      });
    }
    expect((await send([long.repeat(20)], { readMaxBytes: 200 })).received).toHaveLength(20);
  });

  test("accepts a message of the maximum size in any split of its body", async () => {
    const value = '{"sensor":"a"}';
    const want = { received: ["a:0"], httpStatus: 200 };
    expect(await send([value], { readMaxBytes: value.length })).toMatchObject(want);
    expect(await send(cut(value), { readMaxBytes: value.length })).toMatchObject(want);
  });

  test("differs from application/x-ndjson, which requires one value per line", async () => {
    const response = await send(['{"sensor":"a"}{"sensor":"b"}'], { type: "application/x-ndjson" });
    expect(response.message).toMatch(/^line 1: /);
  });

  test("passes each message to the handler while the client still sends", async () => {
    let first: (() => void) | undefined;
    const began = new Promise<void>((resolve) => (first = resolve));
    const recordReadings = async (readings: AsyncIterable<Reading>): Promise<object> => {
      for await (const _ of readings) first?.();
      return {};
    };
    await using greenhouse = await startGreenhouse({ recordReadings }, { rest });
    using upload = await openUpload(greenhouse, "1.1", ["POST", "/readings"], [["content-type", "application/json"]]);
    upload.write('[{"sensor":"a"}');
    await began;
    upload.write("]");
    upload.end();
    expect((await upload.readResponse()).httpStatus).toBe(200);
  });
});

describe("the JSON values of a client stream", () => {
  const options = bindingOptionsOf(KitchenSink, rest);
  const rule = { isRaw: false, hasRequestStream: true, isUnary: false };

  test.each([
    { input: SinkSchema, body: "tags", want: "sequence" },
    { input: SinkSchema, body: "value", want: "sequence" },
    { input: SinkSchema, body: "list", want: "sequence" },
    { input: ListValueSchema, body: "*", want: "sequence" },
    { input: SinkSchema, body: "labels", want: "or-array" },
    { input: SinkSchema, body: "*", want: "or-array" },
  ])('for the body "$body" of a $input.name have the form "$want"', ({ input, body, want }) => {
    const pattern = { httpMethod: "POST", pathTemplate: "/", body, responseBody: "" };
    expect(bodyFormatOf(input, pattern, rule, options).jsonValues).toBe(want);
  });

  test("may be consecutive arrays", () => {
    const received: string[] = [];
    const read = (body: Uint8Array): Message => (received.push(String(Buffer.from(body))), create(EmptySchema));
    const reader = new JsonValueReader(100, { read, end: () => undefined }, false);
    reader.add(Buffer.from("[1,[2]] [3]"));
    while (reader.take() !== undefined);
    expect([received, reader.end()]).toEqual([["[1,[2]]", "[3]"], undefined]);
  });
});

test("the OpenAPI document describes a JSON client stream as an array", () => {
  const { paths } = createOpenApi([GreenhouseService], { info: { title: "t", version: "1" }, rest });
  expect(paths["/readings"]?.post?.requestBody?.content["application/json"]).toEqual({
    schema: { type: "array", items: { $ref: "#/components/schemas/Reading" } },
  });
});
