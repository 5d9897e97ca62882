// oxfmt-ignore
import { create, createFileRegistry, createRegistry, type DescMessage, type MessageInitShape, toJsonString
} from "@bufbuild/protobuf";
// oxfmt-ignore
import { AnySchema, anyUnpack, FieldDescriptorProto_Label, FieldDescriptorProto_Type, FileDescriptorSetSchema,
  FloatValueSchema, ValueSchema } from "@bufbuild/protobuf/wkt";
import { expect, test } from "vitest";
import { makeBooks } from "../../../../../testing/src/gateway/books.ts";
// oxfmt-ignore
import { anyToJson, createJsonMessageWriter, readJson, type WriteJsonOptions
} from "../../../../src/protobuf/messages/json/index.ts";
import { compileForm } from "../../../../src/protobuf/messages/json/write-json.ts";
import { createMessageForms } from "../../../../src/protobuf/messages/json/message-forms.ts";
import { SinkSchema } from "../../../../../testing/src/gen/kitchensink/v1/kitchen_sink_pb.ts";
import { BookSchema, ListBooksResponseSchema } from "../../../../../testing/src/gen/library/v1/library_pb.ts";
import { writeByProtobufEs } from "../../../../../testing/src/gateway/json-oracle.ts";
import { randomMessageTypes, randomTypes, rollMessage } from "../../../../../testing/src/gateway/random-message.ts";
import { Dice, isPeerAtLeast, numRunsOf, testSeed } from "@protoport/testing/process";

const messagesPerType = numRunsOf(4);

// protobuf-es writes -0 as 0.
const negativeZero = /(?<=[:[,])-0(?=[,\]}])/gu;

// Returns the JSON, or "refused" if the message has no JSON form.
function outcomeOf(write: () => string): string {
  try {
    return write().replace(negativeZero, "0");
  } catch {
    return "refused";
  }
}

// Older protobuf-es versions write some messages incorrectly, such as a negative Duration or a key `__proto__`.
test
  .runIf(isPeerAtLeast("@bufbuild/protobuf", "2.16"))
  .each<WriteJsonOptions>([
    {},
    { registry: randomTypes },
    { registry: randomTypes, alwaysEmitImplicit: true },
    { registry: randomTypes, useProtoFieldName: true, enumAsInteger: true },
  ])("with the options %o, random messages get the same JSON as from protobuf-es", (options) => {
  const dice = new Dice(testSeed);
  let written = 0;
  for (const desc of randomMessageTypes) {
    const write = createJsonMessageWriter(desc, options);
    for (let i = 0; i < messagesPerType; i++) {
      const message = rollMessage(dice, desc);
      const want = outcomeOf(() => writeByProtobufEs(desc, message, options));
      if (outcomeOf(() => write(message)) !== want)
        expect(
          outcomeOf(() => write(message)),
          desc.typeName,
        ).toBe(want);
      if (want !== "refused") written++;
    }
  }
  expect(written).toBeGreaterThan((randomMessageTypes.length * messagesPerType) / 2);
});

test.each<[string, MessageInitShape<typeof SinkSchema>, string]>([
  ["a float", { fFloat: Math.fround(19.99) }, '{"fFloat":19.99}'],
  ["a float field that is set to a double", { fFloat: 0.123456789012 }, '{"fFloat":0.12345679}'],
  ["a number above the largest float", { fFloat: 1e39 }, '{"fFloat":"Infinity"}'],
  ["a number closer to zero than the smallest float", { fFloat: -1e-60 }, '{"fFloat":-0}'],
  ["a FloatValue", { wFloat: Math.fround(0.1) }, '{"wFloat":0.1}'],
  ["a double", { fDouble: 19.989999771118164 }, '{"fDouble":19.989999771118164}'],
  ["a float of -0", { fFloat: -0 }, '{"fFloat":-0}'],
  ["a double of -0", { fDouble: -0 }, '{"fDouble":-0}'],
  ["an array with -0", { doubles: [0, -0] }, '{"doubles":[0,-0]}'],
  ["a FloatValue of -0", { wFloat: -0 }, '{"wFloat":-0}'],
  ["a DoubleValue of -0", { wDouble: -0 }, '{"wDouble":-0}'],
  ["a Struct with -0", { struct: { a: -0, b: [-0] } }, '{"struct":{"a":-0,"b":[-0]}}'],
  ["a Value of -0", { values: [create(ValueSchema, { kind: { case: "numberValue", value: -0 } })] }, '{"values":[-0]}'],
  [
    "an Any of a FloatValue of -0",
    // Older protobuf-es releases omit a field of -0.
    { any: { typeUrl: `type.googleapis.com/${FloatValueSchema.typeName}`, value: Buffer.from("0d00000080", "hex") } },
    '{"any":{"@type":"type.googleapis.com/google.protobuf.FloatValue","value":-0}}',
  ],
])("%s is written with the precision and sign of its type", (_name, fields, text) => {
  const message = create(SinkSchema, fields);
  expect(createJsonMessageWriter(SinkSchema, { registry: randomTypes })(message)).toBe(text);
  expect(JSON.stringify(createMessageForms({ registry: randomTypes }).writerOf(SinkSchema).toJson(message))).toBe(text);
});

test.each([255, 256, 257, 512, 600])("an array of %i items is written completely and in order", (count) => {
  const list = create(ListBooksResponseSchema, { books: makeBooks(count) });
  expect(createJsonMessageWriter(ListBooksResponseSchema)(list)).toBe(toJsonString(ListBooksResponseSchema, list));
});

class Labels {
  readonly language = "en";

  toJSON(): string {
    return "other";
  }
}

class Authors extends Array<string> {
  toJSON(): string {
    return "other";
  }
}

test.each([
  ["an array", { authors: Object.assign(["Flora"], { toJSON: () => "other" }) }, '{"authors":["Flora"]}'],
  ["an instance of an array subclass", { authors: Authors.of("Flora") }, '{"authors":["Flora"]}'],
  ["a map", { labels: { language: "en", toJSON: "text" } }, '{"labels":{"language":"en","toJSON":"text"}}'],
  ["an instance of a map class", { labels: new Labels() }, '{"labels":{"language":"en"}}'],
])("%s with strings is written unchanged despite a toJSON method", (_name, fields, text) => {
  expect(createJsonMessageWriter(BookSchema)(Object.assign(create(BookSchema), fields))).toBe(text);
});

// A sparse array: the item at index 1 is a hole.
const holed = ["Flora"];
holed.length = 2;

test.each([
  ["a string array with a number", { authors: ["Flora", 1] }, "expected a string, got number"],
  ["a string array with a hole", { authors: holed }, "expected a string, got undefined"],
  ["a string instead of a string array", { authors: "Flora" }, "expected an array, got string"],
  ["a string map with a number", { labels: { language: "en", binding: 1 } }, "expected a string, got number"],
  ["null instead of a string map", { labels: null }, "expected a message"],
])("%s is refused by the JSON writer", (_name, fields, words) => {
  const message = Object.assign(create(BookSchema), fields);
  expect(() => createJsonMessageWriter(BookSchema)(message)).toThrow(words);
});

test("an Any's JSON object has no undefined members", () => {
  const json = anyToJson("type.googleapis.com/library.v1.Book", BookSchema, create(BookSchema, { title: "Roots" }), {});
  expect(Object.keys(json)).toEqual(["@type", "title"]);
});

/** Defines a message with the fields `f0`, `f1` and so on, with these JSON names. */
function defineOdd(jsonNames: readonly string[]): DescMessage {
  const field = { type: FieldDescriptorProto_Type.STRING, label: FieldDescriptorProto_Label.OPTIONAL };
  const fields = jsonNames.map((jsonName, at) => ({ ...field, name: `f${at}`, number: at + 1, jsonName }));
  const file = { name: "odd.proto", syntax: "proto3", messageType: [{ name: "Odd", field: fields }] };
  const odd = createFileRegistry(create(FileDescriptorSetSchema, { file: [file] })).getMessage("Odd");
  return odd ?? expect.unreachable();
}

test.each([
  ["a shared JSON name", ["same", "same"], {}, '{"same":"0","f1":"1"}'],
  ["a proto name as their shared JSON name", ["f1", "f1"], {}, '{"f0":"0","f1":"1"}'],
  ["__proto__ as JSON name", ["__proto__"], {}, '{"__proto__":"0"}'],
  ["each other's proto names as JSON names", ["f1", "f0"], {}, '{"f1":"0","f0":"1"}'],
  ["each other's proto names as JSON names", ["f1", "f0"], { useProtoFieldName: true }, '{"f1":"0","f0":"1"}'],
  ["another field's proto name as a JSON name", ["f1", "x"], {}, '{"f1":"0","x":"1"}'],
  ["another field's proto name as a JSON name", ["f1", "x"], { useProtoFieldName: true }, '{"f0":"0","x":"1"}'],
  ["a shared JSON name and a proto name as a JSON name", ["same", "same", "f1"], {}, '{"same":"1","f1":"2"}'],
] as const)("fields with %s get distinct JSON names (%j, options %j)", (_name, jsonNames, style, text) => {
  const odd = defineOdd(jsonNames);
  const message = Object.assign(create(odd), Object.fromEntries(jsonNames.map((_, at) => [`f${at}`, String(at)])));
  for (const codegen of [true, false]) expect(createJsonMessageWriter(odd, { ...style, codegen })(message)).toBe(text);
  if (jsonNames.length < 3) expect(readJson(odd, text)).toEqual(message);
});

test("an Any cannot contain a message whose field @type is set", () => {
  const odd = defineOdd(["@type", "b"]);
  const typeUrl = "type.googleapis.com/Odd";
  expect(() => anyToJson(typeUrl, odd, Object.assign(create(odd), { f0: "a" }), {})).toThrow(
    'the field "@type" of Odd conflicts with that of the Any that contains it',
  );
  expect(anyToJson(typeUrl, odd, Object.assign(create(odd), { f1: "a" }), {})).toEqual({ "@type": typeUrl, b: "a" });
});

test("a field @type has its proto name in an Any", () => {
  const odd = defineOdd(["@type", "b"]);
  expect(readJson(odd, '{"@type":"a"}')).toEqual(Object.assign(create(odd), { f0: "a" }));
  const any = readJson(AnySchema, '{"@type":"x/Odd","f0":"a"}', { registry: createRegistry(odd) });
  expect(anyUnpack(any, odd)).toEqual(Object.assign(create(odd), { f0: "a" }));
});

test("generated code creates JSON objects with a member for each field", () => {
  const json = createMessageForms({}, compileForm).writerOf(BookSchema).toJson(create(BookSchema));
  expect(Object.keys(json ?? {})).toHaveLength(BookSchema.fields.length);
});

test("an array in a Struct is written unchanged despite a toJSON method", () => {
  const list = Object.assign([1], { toJSON: () => "other" });
  const message = create(SinkSchema, { struct: { list } });
  expect(createJsonMessageWriter(SinkSchema, {})(message)).toBe(writeByProtobufEs(SinkSchema, message, {}));
});
