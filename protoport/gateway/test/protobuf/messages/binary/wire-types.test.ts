import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { FieldDescriptorProto_Type } from "@bufbuild/protobuf/wkt";
import { describe, expect, test } from "vitest";
import { hasDeclaredWireTypes } from "../../../../src/protobuf/messages/binary/wire-types.ts";
import { SinkSchema } from "../../../../../testing/src/gen/kitchensink/v1/kitchen_sink_pb.ts";
import { everyField } from "../../../../../testing/src/gateway/every-field.ts";
import { messageIn, stringField } from "../../../../../testing/src/gateway/file-init.ts";

const { field } = SinkSchema;

/** A tag (protobuf.dev, "Message Structure"). */
function tag({ number }: { readonly number: number }, wireType: number): number[] {
  const value = (number << 3) | wireType;
  return value < 0x80 ? [value] : [(value & 0x7f) | 0x80, value >> 7];
}

const [varint, bit64, length, bit32] = [0, 1, 2, 5];

test("hasDeclaredWireTypes() accepts a message with every kind of field", () =>
  expect(hasDeclaredWireTypes(SinkSchema, toBinary(SinkSchema, create(SinkSchema, everyField)))).toBe(true));

// oxfmt-ignore
const rows: readonly { readonly name: string; readonly bytes: readonly number[]; readonly want: boolean }[] = [
  { name: "an empty message", bytes: [], want: true },
  { name: "a packed list", bytes: [...tag(field.ids, length), 2, 1, 2], want: true },
  { name: "an unpacked list", bytes: [...tag(field.ids, varint), 1], want: true },
  { name: "an unknown field of any wire type", bytes: [...tag({ number: 999 }, bit32), 1, 2, 3, 4], want: true },
  { name: "text instead of an int64", bytes: [...tag(field.fInt64, length), 0], want: false },
  { name: "a double instead of an int64", bytes: [...tag(field.fInt64, bit64), 7], want: false },
  { name: "text instead of an optional int64", bytes: [...tag(field.maybeInt64, length), 7], want: false },
  { name: "a number instead of a string", bytes: [...tag(field.fString, varint), 0], want: false },
  { name: "a number instead of a double", bytes: [...tag(field.fDouble, varint), 1, 2, 3, 4, 5, 6, 7, 8], want: false },
  { name: "text instead of an enum", bytes: [...tag(field.fEnum, length), 1], want: false },
  { name: "a number instead of a message", bytes: [...tag(field.nested, varint), 0], want: false },
  { name: "a number instead of a list of strings", bytes: [...tag(field.tags, varint), 0], want: false },
  { name: "a number instead of a map", bytes: [...tag(field.labels, varint), 0], want: false },
  { name: "a number instead of a string as a map key", bytes: [...tag(field.labels, length), 2, 8, 0], want: false },
  { name: "a number instead of a string as a map value", bytes: [...tag(field.labels, length), 2, 16, 0], want: false },
  { name: "text instead of a number in a nested message", bytes: [...tag(field.wInt64, length), 2, 10, 1],
    want: false },
  { name: "a message whose field continues past its end", bytes: [...tag(field.wInt64, length), 1, 8, 7], want: false },
  { name: "an empty packed list", bytes: [...tag(field.ids, length), 0], want: true },
  { name: "a packed list of doubles", bytes: [...tag(field.doubles, length), 8, 0, 0, 0, 0, 0, 0, 0, 128], want: true },
  { name: "a packed list whose number continues past its end",
    bytes: [...tag(field.ids, length), 1, ...Buffer.from("8020a0067a080801200220032004", "hex")], want: false },
  { name: "a packed list whose double continues past its end",
    bytes: [...tag(field.doubles, length), 4, ...Buffer.from("0000000020072008", "hex")], want: false },
];

test.each(rows)("hasDeclaredWireTypes() returns $want if $name is encoded", ({ bytes, want }) => {
  const message = Uint8Array.from(bytes);
  expect(hasDeclaredWireTypes(SinkSchema, message)).toBe(want);
  // protobuf-es accepts these messages.
  expect(() => fromBinary(SinkSchema, message)).not.toThrow();
});

describe("hasDeclaredWireTypes() for a message with a group", () => {
  const { GROUP, INT64 } = FieldDescriptorProto_Type;
  const inner = { ...stringField("inner", 1), type: GROUP, typeName: ".Outer" };
  const fields = [inner, { ...stringField("id", 2), type: INT64 }, stringField("name", 3)];
  const desc = messageIn({ name: "groups.proto", messageType: [{ name: "Outer", field: fields }] }, "Outer");

  test.each([
    [true, "a group with fields", [0x0b, 0x10, 7, 0x1a, 1, 0x61, 0x0c, 0x10, 8]],
    [true, "a nested group", [0x0b, 0x0b, 0x10, 7, 0x0c, 0x0c]],
    [true, "an unknown group", [0x0b, 0x23, 0x10, 7, 0x24, 0x0c]],
    [false, "text instead of a number", [0x0b, 0x12, 2, 0x10, 8, 0x0c]],
    [false, "text instead of a number in a nested group", [0x0b, 0x0b, 0x12, 2, 0x10, 8, 0x0c, 0x0c]],
    [false, "text instead of a number after the group", [0x0b, 0x0c, 0x12, 2, 0x10, 8]],
  ])("returns %s if %s is encoded", (want, _name, bytes) => {
    const message = Uint8Array.from(bytes);
    expect(hasDeclaredWireTypes(desc, message)).toBe(want);
    expect(() => fromBinary(desc, message)).not.toThrow();
  });

  test.each([
    { name: "a group that ends with the tag of another group", bytes: [0x0b, 0x10, 7, 0x24] },
    { name: "an unterminated group", bytes: [0x0b, 0x10, 7] },
  ])("returns false if $name is encoded", ({ bytes }) => {
    expect(hasDeclaredWireTypes(desc, Uint8Array.from(bytes))).toBe(false);
  });
});
