import { create, createFileRegistry, type MessageInitShape, setExtension } from "@bufbuild/protobuf";
// oxfmt-ignore
import { type DescriptorProto, type FileDescriptorProto, FileDescriptorProtoSchema, MessageOptionsSchema,
  OneofDescriptorProtoSchema, OneofOptionsSchema } from "@bufbuild/protobuf/wkt";
import * as validate from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { expect, test } from "vitest";
import { notesWith } from "../../../testing/src/gateway/notes.ts";
import { AccountSchema, ReceiptSchema } from "../../../testing/src/gen/signup/v1/signup_pb.ts";
import { findRules, type Rules } from "../../src/validation/rules.ts";

type Given = MessageInitShape<typeof validate.FieldRulesSchema>;

/** Returns rules for a message whose fields have the given ones. */
const rulesWith = (...rules: readonly Given[]) => rulesIn(create(FileDescriptorProtoSchema, notesWith(...rules)));

function rulesIn(file: FileDescriptorProto): Rules {
  const note = createFileRegistry(file, () => validate.file_buf_validate_validate).getMessage("notes.Note");
  if (note === undefined) throw new Error("no message");
  return findRules([note], validate);
}

/** A string's rules, and where a definition may have them. */
const places: readonly (readonly [place: string, at: (rules: Given) => Given])[] = [
  ["a field", (rules) => rules],
  ["list elements", (items) => ({ type: { case: "repeated", value: { items } } })],
  ["map keys", (keys) => ({ type: { case: "map", value: { keys } } })],
  ["map values", (values) => ({ type: { case: "map", value: { values } } })],
];

test.each(places)("findRules counts a pattern for %s only once", (_, at) => {
  const pattern: Given = { type: { case: "string", value: { pattern: "abc" } } };
  expect(rulesWith(at(pattern)).patternCharacters).toBe(3);
});

test.each(places)("CEL expressions for %s belong to their field", (_, at) => {
  const { expressions } = rulesWith(at({ celExpression: ["a"], cel: [{ expression: "b" }] }));
  expect([...expressions]).toEqual(Object.entries({ b: "notes.Note.text0", a: "notes.Note.text0" }));
});

test("findRules adds up the pattern lengths of strings, bytes and map keys", () => {
  const string: Given = { type: { case: "string", value: { pattern: "ab" } } };
  const bytes: Given = { type: { case: "bytes", value: { pattern: "c" } } };
  const map: Given = { type: { case: "map", value: { keys: string, values: bytes } } };
  expect(rulesWith(string, bytes, map)).toMatchObject({ owners: 3, patternCharacters: 6 });
});

test.each<readonly [place: string, add: (note: DescriptorProto) => void]>(
  Object.entries({
    "a message": (note) => {
      note.options = create(MessageOptionsSchema);
      setExtension(note.options, validate.message, create(validate.MessageRulesSchema, { celExpression: ["a"] }));
    },
    "a oneof": (note) => {
      const options = create(OneofOptionsSchema);
      setExtension(options, validate.oneof, create(validate.OneofRulesSchema, { required: true }));
      note.oneofDecl.push(create(OneofDescriptorProtoSchema, { name: "text", options }));
      for (const field of note.field) field.oneofIndex = 0;
    },
  }),
)("findRules finds a message type with rules for %s only", (_, add) => {
  const file = create(FileDescriptorProtoSchema, notesWith({}));
  const [note = expect.unreachable("no message")] = file.messageType;
  for (const field of note.field) delete field.options;
  add(note);
  const { owners, typesWithRules } = rulesIn(file);
  expect([owners, [...typesWithRules].map(({ typeName }) => typeName)]).toEqual([1, ["notes.Note"]]);
});

test("findRules lists only the reached types with rules, outer types first", () => {
  const { typesWithRules } = findRules([ReceiptSchema, AccountSchema], validate);
  expect([...typesWithRules].map(({ typeName }) => typeName)).toEqual(["signup.v1.Account", "signup.v1.Address"]);
});
