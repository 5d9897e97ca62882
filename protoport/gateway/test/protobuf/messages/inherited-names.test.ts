import { create, type Message, toBinary } from "@bufbuild/protobuf";
import { afterEach, expect, test } from "vitest";
import { createBinaryReader, createBinaryWriter } from "../../../src/protobuf/messages/binary/index.ts";
import { createJsonMessageWriter, loadField } from "../../../src/protobuf/messages/json/index.ts";
import { messageIn, stringField } from "../../../../testing/src/gateway/file-init.ts";

/** A recursive message whose field is named like a property that every object inherits. */
const inner = { ...stringField("has_own_property", 1), jsonName: "hasOwnProperty", type: 11, typeName: ".Holder" };
const messageType = [{ name: "Holder", field: [inner, stringField("note", 2)] }];
const holder = messageIn({ name: "holder.proto", syntax: "proto3", messageType }, "Holder");
const [ownProperty] = holder.fields;

const withInner = (fields: object): Message =>
  Object.assign(create(holder), { hasOwnProperty: Object.assign(create(holder), fields) });

const method: object = Reflect.get(Object.prototype, "hasOwnProperty");

// A failing test must not affect the next one.
afterEach(() => {
  Reflect.deleteProperty(method, "note");
});

test("reading a field named hasOwnProperty does not change Object.prototype", () => {
  const read = createBinaryReader(holder, undefined);
  for (const message of [withInner({ note: "Flora's" }), withInner({}), create(holder)]) {
    // Compared as strings, because comparing such objects calls their methods.
    expect(JSON.stringify(read(toBinary(holder, message)))).toBe(JSON.stringify(message));
  }
  expect(Object.keys(method)).toEqual([]);
});

test.each([
  ["is omitted if it is not set", create(holder), "{}"],
  ["is written if it is set", withInner({ note: "a" }), '{"hasOwnProperty":{"note":"a"}}'],
])("a field named hasOwnProperty %s", (_name, message, text) => {
  expect(createJsonMessageWriter(holder)(message)).toBe(text);
  expect([...createBinaryWriter(holder, undefined)(message)]).toEqual([...toBinary(holder, message)]);
});

test("an unset field named hasOwnProperty has no value", () => {
  const values = [create(holder), withInner({})].map(({ ...fields }) => ownProperty && loadField(fields, ownProperty));
  expect(values.map((value) => typeof value)).toEqual(["undefined", "object"]);
});
