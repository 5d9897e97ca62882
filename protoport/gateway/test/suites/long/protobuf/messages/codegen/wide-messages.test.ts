import { create, fromBinary, fromJsonString, toBinary, toJsonString } from "@bufbuild/protobuf";
import { FieldDescriptorProto_Type as Type } from "@bufbuild/protobuf/wkt";
import { describe, expect, test } from "vitest";
import { messageReader, readFast } from "../../../../../../src/protobuf/messages/binary/binary-reader.ts";
import { createCompiledReaders } from "../../../../../../src/protobuf/messages/json/compiled-reader.ts";
import { costRatio } from "../../../../../../../testing/src/cost-ratio.ts";
import { messageIn, stringField } from "../../../../../../../testing/src/gateway/file-init.ts";

const times = (count: number, work: () => unknown) => (): void => {
  for (let i = 0; i < count; i++) work();
};

describe.each([100, 101, 1000])("a message with %i fields", (count) => {
  const types = [Type.STRING, Type.INT32];
  const field = Array.from({ length: count }, (_, n) => ({ ...stringField(`f${n}`, n + 1), type: types[n % 2] ?? 0 }));
  const desc = messageIn({ name: "wide.proto", syntax: "proto3", messageType: [{ name: "Wide", field }] }, "Wide");
  const values = desc.fields.map(({ localName }, n) => [localName, n % 2 === 0 ? localName : n]);
  const message = create(desc, Object.fromEntries(values));
  const readers = createCompiledReaders(false);
  const reader = messageReader(desc);
  const json = toJsonString(desc, message);
  const bytes = toBinary(desc, message);
  const readJson = () => readers.readerOf(desc).read(JSON.parse(json), { strings: 0, mayHaveLoneSurrogates: false });
  const readBytes = (): unknown => readFast(reader, bytes, 100, true);

  test("is read from JSON and from binary", () => {
    expect([readJson(), readBytes()]).toEqual([message, message]);
    expect(readFast(reader, new Uint8Array(), 100, true)).toEqual(create(desc));
  });

  // A constructor would take four times as long, because V8 sets a thousand properties slowly.
  test("is created about as fast as by protobuf-es", async () => {
    const empty = new Uint8Array();
    const byOthers = (): unknown => fromBinary(desc, empty);
    const own = (): unknown => readFast(reader, empty, 100, true);
    expect(await costRatio(times(100, own), times(100, byOthers))).toBeLessThan(2);
  });

  // Comparing each name with all before it would take 14 and 32 times as long as protobuf-es for a thousand names.
  test("is read about as fast as by protobuf-es", async () => {
    const byOthers = (): unknown => fromJsonString(desc, json);
    const binaryByOthers = (): unknown => fromBinary(desc, bytes);
    expect(await costRatio(times(10_000 / count, readJson), times(10_000 / count, byOthers))).toBeLessThan(4);
    expect(await costRatio(times(10_000 / count, readBytes), times(10_000 / count, binaryByOthers))).toBeLessThan(8);
  });
});
