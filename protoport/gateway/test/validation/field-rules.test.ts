// oxfmt-ignore
import { create, createFileRegistry, createRegistry, type DescField, type DescMessage, type DescService,
  type MessageInitShape, type Registry, setExtension } from "@bufbuild/protobuf";
// oxfmt-ignore
import { DescriptorProtoSchema, FieldDescriptorProto_Label, FieldDescriptorProto_Type, FieldDescriptorProtoSchema,
  type FileDescriptorProto, FileDescriptorProtoSchema, OneofDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
// oxfmt-ignore
import { type FieldRulesSchema, file_buf_validate_validate, StringRulesSchema
} from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import type { ServiceImpl } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { notesWith, withPredefined } from "../../../testing/src/gateway/notes.ts";
import { createTestGateway } from "../../../testing/src/gateway/test-gateway.ts";
// oxfmt-ignore
import { AccountSchema, AddressSchema, ReceiptSchema, SignupService
} from "../../../testing/src/gen/signup/v1/signup_pb.ts";
import { exampleOf } from "../../src/validation/field-rules.ts";
import { openValidation } from "../../src/validation/index.ts";

// What documents say about fields with rules.

type Rules = MessageInitShape<typeof FieldRulesSchema>;
type Change = (file: FileDescriptorProto) => void;
const trusted = await openValidation();
const untrusted = await openValidation({ untrusted: true });

/** Returns a message with a string field for each rule. */
function noteWith(rules: readonly Rules[], change: Change = () => {}, name = "notes.Note"): DescMessage {
  const file = create(FileDescriptorProtoSchema, notesWith(...rules));
  change(file);
  const registry = createFileRegistry(file, () => file_buf_validate_validate);
  return registry.getMessage(name) ?? expect.unreachable("no message");
}

const firstField = ({ fields: [field = expect.unreachable("no field")] }: DescMessage): DescField => field;
const string = (value: object) => ({ type: { case: "string" as const, value } });

/** Puts the fields into a oneof. */
const inOneof: Change = ({ messageType: [note = expect.unreachable("no message")] }) => {
  note.oneofDecl.push(create(OneofDescriptorProtoSchema, { name: "text" }));
  for (const field of note.field) field.oneofIndex = 0;
};

const repeated: Change = ({ messageType: [note = expect.unreachable("no message")] }) => {
  for (const field of note.field) field.label = FieldDescriptorProto_Label.REPEATED;
};

/** Turns the fields into maps from strings to strings. */
const maps: Change = (file) => {
  repeated(file);
  const [note = expect.unreachable("no message")] = file.messageType;
  for (const field of note.field) {
    const entry = `Text${field.number - 1}Entry`;
    const members = ["key", "value"].map((name, at) =>
      create(FieldDescriptorProtoSchema, { name, number: at + 1, type: FieldDescriptorProto_Type.STRING, label: 1 }),
    );
    note.nestedType.push(create(DescriptorProtoSchema, { name: entry, field: members, options: { mapEntry: true } }));
    field.type = FieldDescriptorProto_Type.MESSAGE;
    field.typeName = `.notes.Note.${entry}`;
  }
};

test.each<[name: string, want: string, rules: readonly Rules[], change?: Change]>([
  ["marked as required", "required, also if untrusted", [{ required: true }]],
  ["that must not be empty", "required", [string({ minLen: 1n })]],
  ["that may be empty", "optional", [string({ maxLen: 9n }), { required: true }]],
  ["without rules", "optional", [{}]],
  ["in a oneof of two", "optional", [{ required: true }, {}], inOneof],
  ["in a oneof of one", "required, also if untrusted", [{ required: true }], inOneof],
])("a field %s is %s for isRequired", (_name, want, rules, change) => {
  const field = firstField(noteWith(rules, change));
  expect([trusted.isRequired(field), untrusted.isRequired(field)]).toEqual([
    want !== "optional",
    want === "required, also if untrusted",
  ]);
});

const cel = [{ id: "a", expression: "this != 'x'" }];
const lengthRules = string({ minLen: 6n });

test.each<{ name: string; rules: Rules; change?: Change; want: readonly string[] | undefined }>(
  // oxfmt-ignore
  [
    { name: "undefined without keywords", rules: string({}), want: undefined },
    { name: "an example for keywords", rules: lengthRules, want: ["textte"] },
    { name: "no example if no string matches the pattern", rules: string({ pattern: "^none$" }), want: [] },
    { name: "no example for CEL rules", rules: { ...lengthRules, cel }, want: [] },
    { name: "no example for CEL expressions", rules: { ...lengthRules, celExpression: ["true"] }, want: [] },
    { name: "the rules' example despite CEL", rules: { ...string({ example: ["y"] }), cel }, want: ["y"] },
    { name: "an example for a list's element",
      rules: { type: { case: "repeated", value: { minItems: 1n, items: lengthRules } } }, change: repeated,
      want: ["textte"] },
    { name: "undefined for a list whose elements have no rules",
      rules: { type: { case: "repeated", value: { minItems: 1n } } }, change: repeated, want: undefined },
    { name: "an example for a map's value",
      rules: { type: { case: "map", value: { minPairs: 1n, keys: string({ minLen: 9n }), values: lengthRules } } },
      change: maps, want: ["textte"] },
  ],
)("exampleOf returns $name in a field's rules", ({ rules, change, want }) => {
  expect(trusted.exampleOf(firstField(noteWith([rules], change)))).toEqual(want);
});

test("accepts refuses messages that violate a rule or have wrong types", () => {
  const note = noteWith([string({ maxLen: 3n })]);
  expect([trusted.accepts(note, { text0: "abc" }), trusted.accepts(note, { text0: "abcd" })]).toEqual([true, false]);
  expect(trusted.accepts(note, { text0: 7 })).toBe(false);
});

/** Adds a message that contains the note. */
const addOuter: Change = ({ messageType }) => {
  const field = { name: "note", number: 1, type: FieldDescriptorProto_Type.MESSAGE, typeName: ".notes.Note", label: 1 };
  messageType.push(create(DescriptorProtoSchema, { name: "Outer", field: [field] }));
};

test("accepts with untrusted rules accepts only messages without rules, also in fields", () => {
  expect(untrusted.accepts(ReceiptSchema, {})).toBe(true);
  expect(untrusted.accepts(noteWith([{ required: true }], addOuter, "notes.Outer"), {})).toBe(false);
});

test.each([
  { keywords: {}, want: undefined },
  { keywords: { minItems: 1 }, want: undefined },
  { keywords: { const: 3, examples: [4], enum: [5] }, want: 3 },
  { keywords: { examples: [4], enum: [5] }, want: 4 },
  { keywords: { examples: [null, {}], enum: [false], minimum: 1 }, want: false },
  { keywords: { format: "email", minLength: 3 }, want: "ada@example.com" },
  { keywords: { format: "hostname" }, want: "example.com" },
  { keywords: { format: "ipv4" }, want: "192.0.2.1" },
  { keywords: { format: "ipv6" }, want: "2001:db8::1" },
  { keywords: { format: "uri" }, want: "https://example.com/" },
  { keywords: { format: "uri-reference" }, want: "/path" },
  { keywords: { format: "uuid", pattern: "x" }, want: "8e03978e-40d5-43e8-bc93-6894a57f9324" },
  { keywords: { format: "other", minLength: 3 }, want: undefined },
  { keywords: { pattern: "^[0-9]{3}$" }, want: "123" },
  { keywords: { pattern: String.raw`^\p{Lu}$` }, want: "A" },
  { keywords: { pattern: "^none$", minLength: 3 }, want: undefined },
  { keywords: { minLength: 2, maxLength: 20 }, want: "text" },
  { keywords: { minLength: 6 }, want: "textte" },
  { keywords: { maxLength: 3 }, want: "tex" },
  { keywords: { maxLength: 0 }, want: "" },
  { keywords: { minLength: 100 }, want: "text".repeat(25) },
  { keywords: { minLength: 101 }, want: undefined },
  { keywords: { minimum: 18, exclusiveMaximum: 130 }, want: 18 },
  { keywords: { minimum: 18, maximum: 19 }, want: 18 },
  { keywords: { maximum: 5 }, want: 5 },
  { keywords: { exclusiveMinimum: 0, maximum: 0.5 }, want: 0.5 },
  { keywords: { exclusiveMinimum: 1 }, want: 2 },
  { keywords: { exclusiveMaximum: 9 }, want: 8 },
  { keywords: { exclusiveMinimum: 0, exclusiveMaximum: 2 }, want: 1 },
  { keywords: { exclusiveMinimum: 1, exclusiveMaximum: 2 }, want: 1.5 },
])("exampleOf returns $want for the keywords $keywords of a field", ({ keywords, want }) => {
  expect(exampleOf(keywords)).toBe(want);
});

// The predefined rule `notes.short`, an extension of string rules that CEL evaluates.

/** Returns a registry with `notes.short`, and with `notes.Notes`, whose request has a string field for each rule. */
function registryWith(...rules: readonly MessageInitShape<typeof FieldRulesSchema>[]): Registry {
  const file = create(FileDescriptorProtoSchema, withPredefined(notesWith(...rules)));
  return createFileRegistry(file, () => file_buf_validate_validate);
}

/** Returns rules for a string field that must be short. */
function shortText(): MessageInitShape<typeof FieldRulesSchema> {
  const short = registryWith().getExtension("notes.short") ?? expect.unreachable("no extension");
  const value = create(StringRulesSchema);
  setExtension(value, short, true);
  return { type: { case: "string", value } };
}

const registry = registryWith(shortText());
const notes = registry.getService("notes.Notes") ?? expect.unreachable("no service");
const none: Partial<ServiceImpl<DescService>> = {};
const handlers = Object.assign(none, { add: () => ({}) });

test.each([
  { name: "accepts a request that satisfies", text0: "12345678", httpStatus: 200 },
  { name: "refuses a request that violates", text0: "123456789", httpStatus: 400 },
])("the gateway $name a predefined rule", async ({ text0, httpStatus }) => {
  const validation = await openValidation();
  const { fetch } = createTestGateway({ routes: (router) => router.service(notes, handlers), validation });
  const response = await fetch(
    new Request("http://gateway/notes.Notes/Add", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ text0 }),
    }),
  );
  expect(response.status).toBe(httpStatus);
});

test("accepts evaluates the predefined rules of the message's file", async () => {
  const validation = await openValidation();
  const note = registry.getMessage("notes.Note") ?? expect.unreachable("no message");
  expect(["12345678", "123456789"].map((text0) => validation.accepts(note, { text0 }))).toEqual([true, false]);
});

test("the gateway does not start if a predefined rule cannot be compiled", async () => {
  const validation = await openValidation();
  const file = create(FileDescriptorProtoSchema, withPredefined(notesWith(), "size(this"));
  const broken = createFileRegistry(file, () => file_buf_validate_validate);
  expect(() => validation.prepare([notes], broken)).toThrow(/\n- notes\.short: /);
});

test("validation checks only types that are requests with rules", async () => {
  const checkOf = (await openValidation()).prepare([SignupService], createRegistry(SignupService));
  const types = [AccountSchema, ReceiptSchema, AddressSchema];
  expect(types.map((type) => typeof checkOf(type))).toEqual(["function", "undefined", "undefined"]);
});

test("untrusted validation refuses a predefined rule in CEL", async () => {
  const validation = await openValidation({ untrusted: true });
  expect(() => validation.prepare([notes], registry)).toThrow("notes.short has a rule in CEL");
});
