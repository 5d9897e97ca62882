import { describe, expect, test } from "vitest";
import { createGateway, createOpenApi, type RestOptions } from "../../../src/gateway/index.ts";
import { KitchenSink } from "../../gen/kitchensink/v1/kitchen_sink_pb.ts";
import { Shelves } from "../../gen/kitchensink/v1/shelves_pb.ts";
import { createSink, type SinkAnswer } from "../../support/gateway/ask-sink.ts";
import { exchangeFetch } from "../../support/carriers/fetch.ts";
import { kitchenSinkOptions } from "../../support/gateway/kitchen-sink.ts";

// forms of rest.service.

const rest: RestOptions = { service: () => ({ forms: true }) };
const form = "application/x-www-form-urlencoded";

function post(body: string, request = "POST /v1/sinks", options = rest, type = form): Promise<SinkAnswer> {
  return createSink(options)(request, body, type);
}

describe("a form as a body", () => {
  test("is not what only begins with its type", async () => {
    expect(await post('{"fString":"a"}', undefined, rest, `${form}+json`)).toEqual({ sink: { fString: "a" } });
    expect(await post("f_string=a", undefined, rest, `${form.toUpperCase()} ; charset=utf-8`)).toEqual({
      sink: { fString: "a" },
    });
  });

  test.each([
    { body: "f_int64=9007199254740993&fString=a+b%21", sink: { fInt64: "9007199254740993", fString: "a b!" } },
    { body: "tags=a&tags=b&ids=1&ids=2", sink: { tags: ["a", "b"], ids: ["1", "2"] } },
    { body: "nested.text=a&nested.inner.number=7", sink: { nested: { text: "a", inner: { number: "7" } } } },
    { body: "f_enum=COLOR_RED&time=2026-01-01T00:00:00Z", sink: { fEnum: "COLOR_RED", time: "2026-01-01T00:00:00Z" } },
    { body: "fString=&&", sink: {} },
    { body: "f_string=%F0%9D%84%9E", sink: { fString: "𝄞" } },
  ])("$body", async ({ body, sink }) => {
    expect(await post(body)).toEqual({ sink });
  });

  test("sets what the rule leaves to the body", async () => {
    expect(await post("nested.text=a", "PUT /v1/sinks/7")).toEqual({ sink: { fInt64: "7", nested: { text: "a" } } });
    expect(await post("number=5&inner.text=x", "PATCH /v1/nested/n?f_string=q")).toEqual({
      sink: { fString: "q", nested: { text: "n", number: "5", inner: { text: "x" } } },
    });
    expect(await post("text=c", "PATCH /v1/body/choice")).toEqual({ sink: { choiceNested: { text: "c" } } });
  });

  test.each([
    ["a field of the path", "f_int64=8", "is bound by the path", "PUT /v1/sinks/7"],
    ["a field of the path again", "fInt64=7", "is bound by the path", "PUT /v1/sinks/7"],
    ["a field inside the path's", "text=x", "is bound by the path", "PATCH /v1/nested/n"],
    ["an unknown field", "x=1&__proto__=2", 'unknown form fields "x", "__proto__"'],
    ["a field twice", "f_int64=7&fInt64=7", "is set more than once"],
    ["two members of a oneof", "choice_text=a&choice_number=1", "cannot be set together"],
    ["a wrong value", "f_int64=007", 'form field "f_int64": "007" is not an int64'],
    ["a message", "nested=x", "cannot be set by a form field"],
    ["a bad escape", "f_string=%zz", 'form field "f_string=%zz" is malformed'],
    ["bytes that are no UTF-8", "f_string=%ff", "is malformed"],
    ["a character that must be escaped", "f_string=é", "is malformed"],
    ["a map", "labels[a]=b", 'unknown form field "labels[a]"'],
    ["more than 1,000 fields", "tags=a&".repeat(1000), "a form has at most 1000 fields"],
    ["100,000 keys", Array.from({ length: 1e5 }, (_, at) => `k${at}=`).join("&"), "at most 1000"],
    ["nothing but separators", "&".repeat(4_000_000), "at most 1000"],
  ])("is refused with %s", async (_, body, message, request = "POST /v1/sinks") => {
    expect(await post(body, request)).toEqual({ httpStatus: 400, message: expect.stringContaining(message) });
  });

  test("has entries of maps where the service takes them", async () => {
    const options = { service: () => ({ forms: true, mapsInQuery: true }) };
    expect(await post("labels[a]=b&f_enum=COLOR_RED", undefined, options)).toEqual({
      sink: { labels: { a: "b" }, fEnum: "COLOR_RED" },
    });
  });

  test("has what a lenient service ignores", async () => {
    const seen: unknown[] = [];
    const options: RestOptions = {
      service: () => ({ forms: true, lenient: true }),
      onIgnored: (_, names, count) => void seen.push(names, count),
    };
    expect(await post("x=1&f_int64=8", "PUT /v1/sinks/7", options)).toEqual({ sink: { fInt64: "7" } });
    expect(seen).toEqual([["x", "f_int64"], 2]);
  });

  test.each([
    { name: "by default", options: {}, request: "POST /v1/sinks" },
    { name: "where the body is no message", options: rest, request: "PATCH /v1/body/int64" },
    { name: "where the body has a JSON form of its own", options: rest, request: "PATCH /v1/body/struct" },
    { name: "in another charset", options: rest, request: "POST /v1/sinks", type: `${form}; charset=latin1` },
  ])("is 415 $name", async ({ options, request, type }) => {
    expect(await post("a=b", request, options, type)).toMatchObject({ httpStatus: 415 });
  });

  test("has a content type in any case, with parameters", async () => {
    const types = ["Application/X-WWW-Form-Urlencoded", `${form}; charset=UTF-8`, `${form};x=y`];
    for (const type of types) expect(await post("f_int32=7", undefined, rest, type)).toEqual({ sink: { fInt32: 7 } });
  });

  test("gives a PATCH its update mask", async () => {
    const { fetch } = createGateway({
      ...kitchenSinkOptions,
      rest: { service: () => ({ forms: true, updateMaskFromBody: true, mapsInQuery: true }) },
    });
    const body = Buffer.from("theme=a&place.room=b&labels[a]=b&labels[c]=d");
    const header = [["content-type", form]] as const;
    const answer = await exchangeFetch(fetch, { httpMethod: "PATCH", path: "/v1/shelves/1", header, body });
    expect(JSON.parse(String(answer.body))).toMatchObject({ updateMask: "labels,place.room,theme" });
  });

  test("is described beside JSON", () => {
    const { paths } = createOpenApi([KitchenSink, Shelves], { info: { title: "t", version: "1" }, rest });
    const content = paths["/v1/sinks"]?.post?.requestBody?.content ?? {};
    expect(Object.keys(content)).toEqual(["application/json", form]);
    expect(content[form]?.schema).toMatchObject({
      properties: { fString: { type: "string" }, "nested.text": { type: "string" }, ids: { type: "array" } },
    });
    const choice = paths["/v1/body/choice"]?.patch?.requestBody?.content[form]?.schema?.["properties"];
    expect(Object.keys(Object(choice))).toEqual(["text", "number", "flag", "tags"]);
    expect(Object.keys(paths["/v1/body/int64"]?.patch?.requestBody?.content ?? {})).toEqual(["application/json"]);
  });
});
