import { create, type DescMessage, fromBinary, type Message, toBinary } from "@bufbuild/protobuf";
import { StringValueSchema, StructSchema } from "@bufbuild/protobuf/wkt";
import { describe, expect, test } from "vitest";
import { createBinaryReader } from "../../../../src/protobuf/messages/binary/index.ts";
import { LegacySchema } from "../../../../../testing/src/gen/kitchensink/v1/legacy_pb.ts";
import { SinkSchema } from "../../../../../testing/src/gen/kitchensink/v1/kitchen_sink_pb.ts";
import { readBothWays, type Way } from "../../../../../testing/src/gateway/binary-oracle.ts";
import { isPeerAtLeast } from "@protoport/testing/process";
import { everyField } from "../../../../../testing/src/gateway/every-field.ts";

const { field } = SinkSchema;
const [varint, bit64, length, group, endGroup, bit32] = [0, 1, 2, 3, 4, 5];
const tag = ({ number }: { readonly number: number }, wireType: number): number[] => integer((number << 3) | wireType);

const integer = (value: number): number[] =>
  value < 0x80 ? [value] : [(value & 0x7f) | 0x80, ...integer(value >>> 7)];

const unknown = { number: 1000 };
const minusOne = [255, 255, 255, 255, 255, 255, 255, 255, 255, 1];

/** Returns a sink that is nested this many levels deep. */
function nested(depth: number): number[] {
  let bytes: number[] = [];
  for (let level = 1; level < depth; level++) bytes = [...tag(field.child, length), ...integer(bytes.length), ...bytes];
  return bytes;
}

/** A google.protobuf.Struct that contains a number, preceded by its length. */
const struct = [16, 10, 14, 10, 1, 97, 18, 9, 17, 0, 0, 0, 0, 0, 0, 0, 64];

// oxfmt-ignore
const sinkRows: readonly (readonly [name: string, way: Way, bytes: readonly number[]])[] = [
  ["an empty message", "fast", []],
  ["a number of ten bytes", "fast", [...tag(field.fInt64, varint), ...minusOne]],
  ["a negative int32", "fast", [...tag(field.fInt32, varint), ...minusOne]],
  ["a number of eleven bytes", "fallback", [...tag(field.fInt64, varint), 255, ...minusOne]],
  ["a truncated number", "fallback", [...tag(field.fInt64, varint), 255]],
  ["a field without its value", "fallback", tag(field.fInt64, varint)],
  ["a truncated double", "fallback", [...tag(field.fDouble, bit64), 1, 2, 3]],
  ["a string longer than the rest of the message", "fallback", [...tag(field.fString, length), 2, 97]],
  ["a string with a negative length", "fallback", [...tag(field.fString, length), ...minusOne]],
  ["a string without its length", "fallback", tag(field.fString, length)],
  ["bytes longer than the rest of the message", "fallback", [...tag(field.fBytes, length), 2, 97]],
  ["a string that is not UTF-8", "fallback", [...tag(field.fString, length), 1, 255]],
  ["a string whose first byte is not UTF-8", "fallback", [...tag(field.fString, length), 5, 255, 97, 97, 97, 97]],
  ["a short invalid string after a bytes field", "fallback",
    [...tag(field.fBytes, length), 20, ...Array.from({ length: 20 }, () => 97), ...tag(field.fString, length), 1, 255]],
  ["an encoded lone surrogate", "fallback", [...tag(field.fString, length), 3, 0xed, 0xa0, 0x80]],
  ["the character U+FFFD", "fallback", [...tag(field.fString, length), 3, 0xef, 0xbf, 0xbd]],
  ["a byte-order mark", "fallback", [...tag(field.fString, length), 4, 0xef, 0xbb, 0xbf, 97]],
  ["a nested message longer than the rest of the outer message", "fallback", [...tag(field.nested, length), 3, 8, 1]],
  ["a message whose field continues past its end", "fallback", [...tag(field.wInt64, length), 1, 8, 7]],
  ["a message field that occurs twice", "fast",
    [...tag(field.nested, length), 3, 10, 1, 97, ...tag(field.nested, length), 2, 16, 7]],
  ["a packed list", "fast", [...tag(field.ids, length), 2, 1, 2]],
  ["an unpacked list", "fast", [...tag(field.ids, varint), 1, ...tag(field.ids, varint), 2]],
  ["a packed list whose last number continues past its end", "fallback", [...tag(field.ids, length), 1, 129, 1]],
  ["a packed list that ends within a double", "fallback",
    [...tag(field.doubles, length), 9, ...Array.from({ length: 18 }, () => 0)]],
  ["a packed list with the length of two gigabytes and one byte", "fallback",
    [...tag(field.ids, length), ...integer(0x7fff_ffff), 1]],
  ["a list of 150 messages", "fast", Array.from({ length: 150 }, () => [...tag(field.nesteds, length), 0]).flat()],
  ["a struct", "fast", [...tag(field.struct, length), ...struct]],
  ["a list of structs", "fast", [...tag(field.structs, length), ...struct]],
  ["a struct in a oneof", "fast", [...tag(field.choiceStruct, length), ...struct]],
  ["a struct with the wire type varint for a double", "fallback",
    [...tag(field.struct, length), ...struct.with(8, 16)]],
  ["a number instead of a list of strings", "fallback", [...tag(field.tags, varint), 1]],
  ["a string instead of an int64", "fallback", [...tag(field.fInt64, length), 0]],
  ["a map entry", "fast", [...tag(field.labels, length), 6, 10, 1, 97, 18, 1, 98]],
  ["a map entry without key and value", "fast", [...tag(field.labels, length), 0]],
  ["a map entry without its message value", "fast", [...tag(field.nestedById, length), 2, 8, 7]],
  ["a map entry with its value before its key", "fast", [...tag(field.labels, length), 6, 18, 1, 98, 10, 1, 97]],
  ["a map entry with an undeclared field", "fallback", [...tag(field.labels, length), 5, 10, 1, 97, 24, 0]],
  ["a map entry whose string continues past its end", "fallback", [...tag(field.labels, length), 2, 10, 1, 97]],
  ["the map key __proto__", "fallback",
    [...tag(field.labels, length), 14, 10, 9, ...Buffer.from("__proto__"), 18, 1, 98]],
  ["an unknown field", "fast", [...tag(unknown, bit32), 1, 2, 3, 4]],
  ["two unknown fields", "fast", [...tag(unknown, varint), 1, ...tag(unknown, length), 1, 97]],
  ["an unknown field whose number takes five bytes", "fast", [...tag({ number: 2 ** 26 }, varint), 1]],
  ["an unknown field that continues past the end", "fallback", [...tag(unknown, length), 2, 97]],
  ["an unknown group", "fallback", [...tag(unknown, group), 8, 1, ...tag(unknown, endGroup)]],
  ["an unterminated group", "fallback", tag(unknown, group)],
  ["an end-group tag without a group", "fallback", tag(unknown, endGroup)],
  ["the field number 0", "fallback", [0, 0]],
  ["wire type 7", "fallback", [...tag(unknown, 7), 0]],
  ["a tag of six bytes", "fallback", [0x88, 0x80, 0x80, 0x80, 0x80, 0x00, 1]],
  ["a tag beyond 32 bits", "fallback", [(field.fBool.number << 3) | 0x80, 0x80, 0x80, 0x80, 0x10, 1]],
  ["100 nested messages", "fast", nested(100)],
  ["101 nested messages", "fallback", nested(101)],
];

test.each(sinkRows)("the binary reader handles %s on the %s path", (_, way, bytes) => {
  expect(readBothWays(SinkSchema, Uint8Array.from(bytes))).toBe(way);
});

describe("createBinaryReader()", () => {
  test.each(sinkRows)("accepts or refuses %s like protobuf-es", (_, way, bytes) => {
    const message = Uint8Array.from(bytes);
    const read = createBinaryReader(SinkSchema, undefined);
    const expected = outcomeOf(() => fromBinary(SinkSchema, message));
    const actual = outcomeOf(() => read(message));
    // Only our reader refuses fields whose wire type differs from the declared one.
    if (expected instanceof Error || !(actual instanceof Error)) expect(actual).toEqual(expected);
    else expect(way).toBe("fallback");
  });

  test("refuses a field with a wrong wire type, unlike protobuf-es", () => {
    const bytes = Uint8Array.from([...tag(field.fInt64, length), 0]);
    expect(() => createBinaryReader(SinkSchema, undefined)(bytes)).toThrow(/has the wrong wire type$/);
  });

  // The struct's value is four levels deep: message, struct, entry, value.
  test.runIf(isPeerAtLeast("@bufbuild/protobuf", "2.16")).each([
    [2, "fallback"],
    [3, "fast"],
  ])("reads a struct with recursionLimit %i on the %s path", (depth, way) => {
    expect(readBothWays(SinkSchema, Uint8Array.from([...tag(field.struct, length), ...struct]), depth)).toBe(way);
  });

  test("returns the right strings when their hashes collide", () => {
    const readMessage = createBinaryReader(StringValueSchema, undefined);
    const readText = (text: string): unknown =>
      Reflect.get(readMessage(Uint8Array.from([10, text.length, ...Buffer.from(text)])), "value");
    const characters = Array.from({ length: 95 }, (_, n) => String.fromCharCode(32 + n));
    const texts = characters.flatMap((first) => characters.map((second) => `a${first}${second}`));
    // Some have the same hash as "a".
    expect(texts.flatMap((text) => [readText(text), readText("a")])).toEqual(texts.flatMap((text) => [text, "a"]));
  });

  test.each([99, 100])("applies recursionLimit %i like protobuf-es", (recursionLimit) => {
    const bytes = Uint8Array.from(nested(100));
    const read = createBinaryReader(SinkSchema, { recursionLimit });
    expect(outcomeOf(() => read(bytes))).toEqual(outcomeOf(() => fromBinary(SinkSchema, bytes, { recursionLimit })));
  });

  test("drops unknown fields if readUnknownFields is false", () => {
    const bytes = Uint8Array.from([...tag(unknown, varint), 1]);
    expect(createBinaryReader(SinkSchema, { readUnknownFields: false })(bytes).$unknown).toBeUndefined();
    expect(createBinaryReader(SinkSchema, undefined)(bytes).$unknown).toHaveLength(1);
  });

  test("returns bytes fields as views of the input", () => {
    const bytes = toBinary(SinkSchema, create(SinkSchema, { fBytes: Uint8Array.of(1, 2) }));
    expect(createBinaryReader(SinkSchema, undefined)(bytes)).toHaveProperty("fBytes.buffer", bytes.buffer);
  });
});

const shade = LegacySchema.field.shade.number << 3;
const legacy = create(LegacySchema, { name: "a", child: { name: "b" }, choice: { case: "choiceText", value: "" } });

/** Messages with every kind of field that the fast reader must read. */
test.each<[name: string, desc: DescMessage, message: Message]>([
  ["a Sink message", SinkSchema, create(SinkSchema, everyField)],
  ["a Legacy message", LegacySchema, legacy],
  ["a struct", StructSchema, create(StructSchema, { fields: { a: { kind: { case: "numberValue", value: 1 } } } })],
])("%s is read on the fast path", (_name, desc, message) => {
  const bytes = toBinary(desc, message);
  expect(readBothWays(desc, bytes)).toBe("fast");
  // The prototype is that of create(), because `isFieldSet` and the proto2 defaults need it.
  expect(Object.getPrototypeOf(createBinaryReader(desc, undefined)(bytes))).toBe(Object.getPrototypeOf(create(desc)));
});

test.each<{ name: string; bytes: readonly number[]; way: Way }>([
  { name: "a declared value", bytes: [shade, 1], way: "fast" },
  { name: "an undeclared value", bytes: [shade, 3], way: "fallback" },
])("a closed enum with $name is read on the $way path", ({ bytes, way }) => {
  expect(readBothWays(LegacySchema, Uint8Array.from(bytes))).toBe(way);
});

function outcomeOf(read: () => Message): Message | Error {
  try {
    return read();
  } catch (error) {
    return error instanceof Error ? error : new Error("no error", { cause: error });
  }
}
