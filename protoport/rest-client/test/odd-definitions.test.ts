import { create, createFileRegistry, createRegistry, setExtension, toJson } from "@bufbuild/protobuf";
import type { DescMessage, DescMethod, MessageInitShape } from "@bufbuild/protobuf";
import {
  AnySchema,
  type FieldDescriptorProtoSchema,
  FieldDescriptorProto_Label,
  FieldDescriptorProto_Type,
  FileDescriptorProtoSchema,
  FileDescriptorSetSchema,
  MethodOptionsSchema,
  StructSchema,
  ValueSchema,
} from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { readResponseError } from "../src/response-error.ts";
import { createResponseReader } from "../src/response-reader.ts";
import { readResponseStream } from "../src/response-stream.ts";
import { RestMethod } from "../src/rest-method.ts";
import { compileRestRules } from "../src/rest-rule.ts";
import { http } from "../../gateway/src/protobuf/gen/google/api/annotations_pb.ts";
import { type HttpRule, HttpRuleSchema } from "../../gateway/src/protobuf/gen/google/api/http_pb.ts";
import { FileService } from "../../testing/src/gen/files/v1/files_pb.ts";
import { KitchenSink, NestedSchema, SinkSchema } from "../../testing/src/gen/kitchensink/v1/kitchen_sink_pb.ts";

// Definitions that protoc accepts, but whose requests or responses could be misread.

/** Creates a file with one message that has string fields, and an RPC for each template. */
function defineRpcs(
  jsonNames: Readonly<Record<string, string>>,
  templates: readonly string[],
  additionalBindings: HttpRule[] = [],
): readonly DescMethod[] {
  const field = Object.entries(jsonNames).map(([name, jsonName], at) => ({
    name,
    jsonName,
    number: at + 1,
    label: FieldDescriptorProto_Label.OPTIONAL,
    type: name === "inner" ? FieldDescriptorProto_Type.MESSAGE : FieldDescriptorProto_Type.STRING,
    ...(name === "inner" && { typeName: ".odd.Thing" }),
  })) satisfies MessageInitShape<typeof FieldDescriptorProtoSchema>[];
  const method = templates.map((get, at) => {
    const options = create(MethodOptionsSchema);
    setExtension(options, http, { $typeName: "google.api.HttpRule", selector: "", ...ruleOf(get), additionalBindings });
    return { name: `Rpc${at}`, inputType: ".odd.Thing", outputType: ".odd.Thing", options };
  });
  const parts = { messageType: [{ name: "Thing", field }], service: [{ name: "Odd", method }] };
  const file = create(FileDescriptorProtoSchema, { name: "odd.proto", package: "odd", syntax: "proto3", ...parts });
  const registry = createFileRegistry(create(FileDescriptorSetSchema, { file: [file] }));
  return registry.getService("odd.Odd")?.methods ?? [];
}

const ruleOf = (get: string) => ({ pattern: { case: "get" as const, value: get }, body: "", responseBody: "" });

function targetOf(method: DescMethod | undefined, values: object, write: { useProtoFieldName?: boolean } = {}): string {
  if (method === undefined) throw new Error("the RPC is missing");
  const message = Object.assign(create(method.input), values);
  try {
    return new RestMethod(method, { write, read: {}, registry: undefined }).write(message).target;
  } catch (error) {
    if (!(error instanceof ConnectError)) throw error;
    return error.rawMessage.replace(/^.*?: /, "");
  }
}

test.each([
  { name: "slashes", others: ["/x/{a}/{b}", "/x/{a}/{b}:peek"], value: "y/:peek", read: "/x/{a}/{b}" },
  { name: "colons", others: ["/x/{a}:peek"], value: "y/z:peek", read: "/x/{a}:peek" },
  { name: "slashes and colons", others: ["/x/{a}/{b}:peek"], value: "y/z:peek", read: "/x/{a}/{b}:peek" },
])("a value is refused if decoding its $name gives another RPC's path", ({ others, value, read }) => {
  const [one] = defineRpcs({ a: "a", b: "b" }, ["/x/{a}", ...others]);
  expect(targetOf(one, { a: "y:z" })).toBe("/x/y%3Az");
  const path = `/x/${encodeURIComponent(value)}`;
  expect(targetOf(one, { a: value })).toBe(`a: the path ${path} could also match GET ${read}`);
});

test("a value is refused if decoding its slashes gives another value", () => {
  const [one] = defineRpcs({ a: "a", b: "b" }, ["/x/{a}/{b=**}"]);
  expect(targetOf(one, { a: "y", b: "z/w" })).toBe("/x/y/z/w");
  expect(targetOf(one, { a: "y/z", b: "w" })).toBe("a: the path /x/y%2Fz/w could also match GET /x/{a}/{b=**}");
});

test("the wildcard ** also matches no segments", () => {
  const [one] = defineRpcs({ a: "a" }, ["/{a=x/**}"]);
  expect([targetOf(one, { a: "x" }), targetOf(one, { a: "y" })]).toEqual(["/x", 'a: does not match "x/**"']);
});

test("path literals are sent without unnecessary percent escapes", () => {
  const [one] = defineRpcs({ a: "a", b: "b" }, ["/caf%c3%a9/a%40b/{a=x@y/**/$(z)/*}/{b}:p%65ek"]);
  expect(targetOf(one, { a: "x@y/1@/2/$(z)/$", b: "@" })).toBe("/caf%C3%A9/a@b/x@y/1%40/2/$(z)/%24/%40:peek");
});

test("a raw body whose data is not bytes is refused", () =>
  expect(targetOf(FileService.method.echo, { data: "text" })).toBe("google.api.HttpBody.data: must be a Uint8Array"));

test("a HEAD response is read as the empty message despite response_body", () => {
  const [one] = defineRpcs({ a: "a" }, ["/x"]);
  const [rule] = one === undefined ? [] : compileRestRules(one);
  if (rule === undefined) throw new Error("the rule is missing");
  const readerOf = (more: object) => createResponseReader({ ...rule, ...more }, { unknownFields: "ignore" });
  const reader = readerOf({ httpMethod: "HEAD" });
  expect(reader.readBody(new Uint8Array(), new Response())).toEqual(create(rule.method.output));
  expect(() => readerOf({ pattern: { ...rule.pattern, responseBody: "b" } })).toThrow(
    expect.objectContaining({ code: Code.Internal, rawMessage: 'response_body "b" is not a field of odd.Thing' }),
  );
});

test.each([
  { name: "is the path of another field", names: { a: "inner.text", inner: "inner", text: "text" } },
  { name: "is the name of another field", names: { a: "text", text: "other" } },
  { name: "contains a bracket", names: { a: "text[b]", text: "text" } },
])("a query uses the proto name if the JSON name $name (ambiguous)", ({ names }) => {
  const [list] = defineRpcs(names, ["/x"]);
  expect(targetOf(list, { a: "1", text: "2" })).toMatch(/^\/x\?a=1&(?:text|other)=2$/);
});

test("a field with two ambiguous names is refused in a query", () => {
  const [list] = defineRpcs({ a: "text", text: "a" }, ["/x"]);
  expect(targetOf(list, {})).toBe("/x");
  expect(targetOf(list, { a: "1" })).toBe("a: each of its names is ambiguous with another field");
});

test("useProtoFieldName uses the JSON name if the proto name is ambiguous", () => {
  const [list] = defineRpcs({ a: "b", b: "c" }, ["/x"]);
  expect(targetOf(list, { a: "1", b: "2" })).toBe("/x?a=1&c=2");
  expect(targetOf(list, { b: "2" }, { useProtoFieldName: true })).toBe("/x?c=2");
});

const ndjson = "application/x-ndjson";
const json = "application/json";
const gone = { code: 5, message: "gone" };
type StreamRow = [name: string, type: string, body: unknown[], want: unknown[], output?: DescMessage, field?: string];

test.each<StreamRow>([
  ["a field named error in lines", ndjson, [{ error: "a" }, { result: "b" }], [{ error: "a" }, { result: "b" }]],
  ["a field named error in an array", json, [[{ error: "a" }]], [{ error: "a" }]],
  ["a field named result in a wrapper", json, [{ result: { result: "a" } }], [{ result: "a" }]],
  ["an error between concatenated values", json, [{ error: gone }], ["gone"]],
  ["an error line", ndjson, [{ "@error": gone }], ["gone"]],
  ["a message with an unknown member error", ndjson, [{ error: gone, text: "a" }], [{ text: "a" }], NestedSchema],
  ["an error line for a message type without a field error", ndjson, [{ error: gone }], ["gone"], NestedSchema],
  ["Struct messages", ndjson, [{ result: 1 }], [{ result: 1 }], StructSchema],
  ["Value messages", ndjson, [{ "@error": 1 }], [{ "@error": 1 }], ValueSchema],
  ["an error instead of an Any", ndjson, [{ error: gone }], ["gone"], AnySchema],
  ["a map field with the key result", ndjson, [{ result: "a" }], [{ labels: { result: "a" } }], SinkSchema, "labels"],
  ["a list on each line", ndjson, [["a"], ["b"]], [{ tags: ["a"] }, { tags: ["b"] }], SinkSchema, "tags"],
  ["an error instead of a string", ndjson, [{ error: gone }], ["gone"], SinkSchema, "f_string"],
])("a stream with %s keeps messages and errors apart", async (_, type, body, want, output, field = "") => {
  const [method] = defineRpcs({ error: "error", result: "result" }, ["/x"]);
  const [found] = method === undefined ? [] : compileRestRules(method);
  if (found === undefined) throw new Error("the rule is missing");
  const pattern = { ...found.pattern, responseBody: field };
  const rule = { ...found, pattern, method: { ...found.method, ...(output && { output }) } };
  const registry = createRegistry(NestedSchema);
  const reader = createResponseReader(rule, { unknownFields: "ignore", registry });
  const bytes = Buffer.from(body.map((value) => `${JSON.stringify(value)}\n`).join(""));
  // Sent byte by byte, because the first bytes of a body may arrive alone.
  const pieces = ReadableStream.from(Array.from(bytes, (byte) => Uint8Array.of(byte)));
  const response = new Response(pieces, { headers: { "content-type": type } });
  const errors = { readErrorBody: undefined, registry: createRegistry() };
  const results: unknown[] = [];
  try {
    for await (const message of readResponseStream(response, { rule, reader, errors, maxMessageBytes: 1000 }))
      results.push(toJson(rule.method.output, message));
  } catch (error) {
    results.push(ConnectError.from(error).rawMessage);
  }
  expect(results).toEqual(want);
});

test("a string field named value in JSON is not read as bytes", () => {
  const types = defineRpcs({ text: "value" }, ["/x"]).map(({ input }) => input);
  const record = { details: [{ "@type": "x/odd.Thing", value: "CgF0" }] };
  const errors = { readErrorBody: undefined, registry: createRegistry(...types) };
  const [detail] = readResponseError(record, 400, new Headers(), errors).details;
  expect(detail).toMatchObject({ value: Uint8Array.from(Buffer.from("\n\x04CgF0")) });
});

// The RPCs are not streams, but their messages are written as in a stream.
test.each([
  ["a missing Value in the first message", "value", "writeFirstMessage", "value: must be set in a stream"],
  ["a missing Value in a later message", "value", "writeLater", "value: must be set in a stream"],
  ["an empty path variable in a later message", "*", "writeLater", "choice_text: may be set only in the first"],
] as const)("%s is refused in a stream", (_name, body, write, want) => {
  const method = body === "*" ? KitchenSink.method.replace : KitchenSink.method.update;
  const rule = compileRestRules(method).findLast(({ pattern }) => pattern.body === body);
  if (rule === undefined) throw new Error("the rule is missing");
  const message = create(SinkSchema, { choice: { case: "choiceText", value: "" } });
  const rest = new RestMethod(method, { write: {}, read: {}, registry: undefined });
  expect(() => rest[write](rule, body === "*" ? message : create(SinkSchema))).toThrow(
    expect.objectContaining({ code: Code.InvalidArgument, rawMessage: expect.stringContaining(`: ${want}`) }),
  );
});

test("a message that no query can represent uses another binding", () => {
  const post = create(HttpRuleSchema, { pattern: { case: "post", value: "/v1/things:find" }, body: "*" });
  const [desc] = defineRpcs({ name: "name", inner: "inner" }, ["/v1/things"], [post]);
  if (desc === undefined) throw new Error("the RPC is missing");
  const method = new RestMethod(desc, { write: {}, read: {}, registry: undefined });
  const lineOf = (input: MessageInitShape<typeof desc.input>) => {
    const { rule, target, body } = method.write(create(desc.input, input));
    return `${rule.httpMethod} ${target} ${body === undefined ? "" : new TextDecoder().decode(body.bytes)}`;
  };
  expect(lineOf({ name: "a" })).toBe("GET /v1/things?name=a ");
  expect(lineOf({ name: "a", inner: create(desc.input) })).toBe('POST /v1/things:find {"name":"a","inner":{}}');
});
