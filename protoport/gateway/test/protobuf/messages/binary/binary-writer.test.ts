import { create, type DescMessage, toBinary } from "@bufbuild/protobuf";
import { FieldMaskSchema, StructSchema } from "@bufbuild/protobuf/wkt";
import { expect, test } from "vitest";
import { messageWriter, writeFast } from "../../../../src/protobuf/messages/binary/binary-writer.ts";
import { createBinaryWriter } from "../../../../src/protobuf/messages/binary/index.ts";
import { LegacySchema } from "../../../../../testing/src/gen/kitchensink/v1/legacy_pb.ts";
import { SinkSchema } from "../../../../../testing/src/gen/kitchensink/v1/kitchen_sink_pb.ts";
import { type Way, writeBothWays } from "../../../../../testing/src/gateway/binary-oracle.ts";
import { isPeerAtLeast } from "@protoport/testing/process";
import { everyField } from "../../../../../testing/src/gateway/every-field.ts";

type Init = Readonly<Record<string, unknown>>;

// oxfmt-ignore
const rows: readonly { name: string; desc?: DescMessage; init: Init; way: Way }[] = [
  { name: "an empty message", init: {}, way: "fast" },
  { name: "every kind of field", init: everyField, way: "fast" },
  { name: "a double of -0", init: { fDouble: -0 }, way: "fast" },
  { name: "a map with the key __proto__", init: { labels: { ["__proto__"]: "own" } }, way: "fast" },
  { name: "a oneof field with an empty value", init: { choice: { case: "choiceText", value: "" } }, way: "fast" },
  { name: "a string of 127 characters", init: { fString: "x".repeat(127) }, way: "fast" },
  { name: "a string of 128 characters", init: { fString: "x".repeat(128) }, way: "fast" },
  { name: "a string whose byte length needs a longer varint than its character count",
    init: { fString: "é".repeat(100) }, way: "fast" },
  { name: "a short string with a last character that is not ASCII", init: { fString: "abcdé" }, way: "fast" },
  { name: "a float that is NaN", init: { fFloat: Number.NaN }, way: "fast" },
  { name: "a lone surrogate", init: { fString: "\ud800" }, way: "fast" },
  { name: "a message that is larger than the reused buffer",
    init: { tags: Array.from({ length: 30_000 }, () => "tag") }, way: "fast" },
  { name: "a string of a megabyte", init: { fString: "é".repeat(500_000) }, way: "fast" },
  { name: "strings that fit into the reused buffer only one at a time",
    init: { tags: Array.from({ length: 4 }, () => "x".repeat(20_000)) }, way: "fast" },
  { name: "a number at the very end of the reused buffer",
    init: { tags: ["x".repeat(21_000), "x".repeat(21_000), "x".repeat(23_518)], fInt64: 1n }, way: "fast" },
  { name: "a field that is set to undefined", init: { maybeInt64: undefined, nested: undefined }, way: "fast" },
  { name: "an unknown field", init: { $unknown: [{ no: 1000, wireType: 0, data: Uint8Array.of(1) }] }, way: "fast" },
  { name: "a required field that is not set", desc: LegacySchema, init: {}, way: "fallback" },
  { name: "a required field", desc: LegacySchema, init: { name: "" }, way: "fast" },
  { name: "a field set to its proto2 default", desc: LegacySchema, init: { name: "a", number: 7 }, way: "fast" },
  { name: "nested structs", init: { struct: { a: 1 }, structs: [{ b: 2 }] }, way: "fast" },
  { name: "a struct", desc: StructSchema, init: { fields: { a: { kind: { case: "numberValue", value: 1 } } } },
    way: "fast" },
];

// The buffer tests come first, because they require that no message with this type was written before. A message that
// fills most of its buffer is not copied.
test.each([
  ["large", 52_000],
  ["small", 10],
])("a %s message's bytes do not change when the next message is written", (_, length) => {
  const write = createBinaryWriter(FieldMaskSchema, undefined);
  const first = write(create(FieldMaskSchema, { paths: Array.from({ length }, () => "aaa") }));
  const before = Buffer.from(first);
  write(create(FieldMaskSchema, { paths: ["b"] }));
  expect(Buffer.compare(first, before)).toBe(0);
});

// Before 2.16, protobuf-es drops a double of -0, and a map key `__proto__`.
const dropped: readonly string[] = ["a double of -0", "a map with the key __proto__"];
const comparable = rows.filter(({ name }) => !dropped.includes(name) || isPeerAtLeast("@bufbuild/protobuf", "2.16"));

test.each(comparable)("the binary writer writes $name on the $way path", ({ desc = SinkSchema, init, way }) => {
  // create() accepts neither unknown fields nor undefined.
  const rest = Object.entries(init).filter(([name, value]) => name === "$unknown" || value === undefined);
  expect(writeBothWays(desc, Object.assign(create(desc, init), Object.fromEntries(rest)))).toBe(way);
});

const wrong: readonly { name: string; set: Init }[] = [
  { name: "a fraction as an int32", set: { fInt32: 1.5 } },
  { name: "an int32 that is too large", set: { fInt32: 2 ** 31 } },
  { name: "a string as an int32", set: { fInt32: "x" } },
  { name: "a uint32 below zero", set: { fUint32: -1 } },
  { name: "an int64 that is too large", set: { fInt64: 2n ** 63n } },
  { name: "a uint64 below zero", set: { fUint64: -1n } },
  { name: "a float that is too large", set: { fFloat: 1e300 } },
  { name: "a number as bytes", set: { fBytes: 7 } },
  { name: "a list with undefined", set: { ids: undefined } },
  { name: "a message of another type", set: { nested: { $typeName: "other" } } },
];

test.each(wrong)("createBinaryWriter() for $name, throws the same error as protobuf-es", ({ set }) => {
  const message = Object.assign(create(SinkSchema), set);
  const write = createBinaryWriter(SinkSchema, undefined);
  const { message: expected } = errorOf(() => toBinary(SinkSchema, message));
  expect(errorOf(() => write(message)).message).toBe(expected);
});

test("createBinaryWriter() drops unknown fields if writeUnknownFields is false", () => {
  const message = create(SinkSchema, { fInt32: 1 });
  message.$unknown = [{ no: 1000, wireType: 0, data: Uint8Array.of(1) }];
  const write = createBinaryWriter(SinkSchema, { writeUnknownFields: false });
  expect(Buffer.from(write(message))).toEqual(Buffer.from(toBinary(SinkSchema, create(SinkSchema, { fInt32: 1 }))));
});

test("createBinaryWriter() returns to the fast path after an invalid unknown field", () => {
  const odd = Object.assign(create(SinkSchema), { $unknown: [{ no: 1000, wireType: 0, data: {} }] });
  expect(writeBothWays(SinkSchema, odd)).toBe("fallback");
  const large = create(SinkSchema, { tags: Array.from({ length: 30_000 }, () => "tag") });
  expect(writeBothWays(SinkSchema, large)).toBe("fast");
});

test("createBinaryWriter() plans a buffer an eighth larger than the last large message", () => {
  const writer = messageWriter(SinkSchema);
  writer.largeBytes = 0;
  // The message fills most of the first buffer.
  const bytes = writeFast(writer, create(SinkSchema, { fBytes: new Uint8Array(240_000) }));
  expect(writer.largeBytes).toBe(Math.ceil(1.125 * Number(bytes?.byteLength)));
});

test("createBinaryWriter() writes a message whose getter writes another message", () => {
  const inner = create(SinkSchema, { fString: "inner" });
  const outer = create(SinkSchema, { fInt32: 1 });
  const properties = { get: () => String(writeFast(messageWriter(SinkSchema), inner)?.byteLength) };
  Object.defineProperty(outer, "fString", { ...properties, enumerable: true });
  expect(writeBothWays(SinkSchema, outer)).toBe("fast");
});

function errorOf(write: () => unknown): Error {
  try {
    write();
  } catch (error) {
    if (error instanceof Error) return error;
  }
  throw new Error("nothing was thrown");
}
