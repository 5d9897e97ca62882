// oxfmt-ignore
import { create, createFileRegistry, type DescMessage, type DescService, type JsonValue, type MessageInitShape,
  type Registry, setExtension } from "@bufbuild/protobuf";
// oxfmt-ignore
import { FieldDescriptorProto_Label, FieldDescriptorProto_Type, type DescriptorProtoSchema,
  type FieldDescriptorProtoSchema, FieldOptionsSchema, FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import { field as fieldRules, FieldRulesSchema } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { Ajv2020 } from "ajv/dist/2020.js";
import ajvFormats from "ajv-formats";
import { expect, test } from "vitest";
import { readJson } from "../../../src/protobuf/messages/json/index.ts";
import { createMessageSchema } from "../../../src/openapi/index.ts";
import { openValidation } from "../../../src/validation/index.ts";

// The schema for a message with a rule accepts a value if and only if the server accepts it.

const validation = await openValidation();
type Rules = MessageInitShape<typeof FieldRulesSchema>;
const types = FieldDescriptorProto_Type;

/** The forms that field `f` can have, and the values that are tried. */
// oxfmt-ignore
const fields = {
  string: { type: types.STRING,
    values:
    [..."|a|b|ab|abc|xabcx|é|1.2.3.4|::1|fe80::1%eth0|fe80::1%|ada@example.com|example.com|https://a.example/|a b|%".split("|"),
      ..."8e03978e-40d5-43e8-bc93-6894a57f9324|8E03978E40D543E8BC936894A57F9324|01ARZ3NDEKTSV4RRFFQ69G5FAV".split("|")] },
  bytes: { type: types.BYTES, values: ["", "AA==", "AAAA"] },
  bool: { type: types.BOOL, values: [true, false] },
  int32: { type: types.INT32, values: [-6, -5, -1, 0, 1, 4, 5, 6, 2 ** 31 - 1] },
  uint32: { type: types.UINT32, values: [0, 1, 5, 2 ** 32 - 1] },
  int64: { type: types.INT64, values: ["-1", "0", "1", "5", "9007199254740993", "9223372036854775807"] },
  float: { type: types.FLOAT, values: [-1.5, 0, 0.1, 0.5, 1, 5] },
  double: { type: types.DOUBLE, values: [-1.5, 0, 0.1, 0.5, 1, 5] },
  enum: { type: types.ENUM, typeName: ".probe.E", values: ["ZERO", "ONE", "UNO", "TWO"] },
  message: { type: types.MESSAGE, typeName: ".probe.Nested", values: [{}] },
  "list of strings": { type: types.STRING, isList: true,
    values: [[], ["a"], ["a", "a"], ["a", "b"], ["ab", "b", "c"]] },
  "list of enums": { type: types.ENUM, typeName: ".probe.E", isList: true, values: [[], ["ZERO"], ["ONE", "TWO"]] },
  "map of strings": { key: types.STRING, values: [{}, { a: "a" }, { ab: "b" }, { a: "x", b: "y", c: "z" }] },
  "map of int32": { key: types.INT32, values: [{}, { 1: "a" }, { "-1": "a" }, { 1: "a", 2: "ab" }] },
  "map of int64": { key: types.INT64, values: [{}, { 1: "a" }, { 2: "a" }] },
  "map of bool": { key: types.BOOL, values: [{}, { true: "a" }, { false: "a" }, { true: "a", false: "a" }] },
} as const satisfies Readonly<Record<string, FieldForm>>;

interface FieldForm {
  readonly type?: FieldDescriptorProto_Type;
  readonly typeName?: string;
  readonly isList?: true;
  readonly key?: FieldDescriptorProto_Type;
  readonly values: readonly JsonValue[];
}

interface Row {
  readonly field: keyof typeof fields;
  readonly rules: Rules;
  /** Whether JSON Schema cannot express the rule, so that the schema accepts every value. */
  readonly isLeftOut?: true;
}

function rulesOf(kind: NonNullable<Rules["type"]>["case"], value: object): Rules {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- each kind has a separate type
  return { type: { case: kind, value } } as Rules;
}

const rows: readonly Row[] = [
  ...(["string", "bytes", "bool", "int32", "int64", "float", "enum", "message"] as const).map((field) => {
    return { field, rules: { required: true } };
  }),
  ...(["list of strings", "map of strings"] as const).map((field) => ({ field, rules: { required: true } })),
  { field: "string", rules: { ...rulesOf("string", { minLen: 2n }), required: true } },
  ...[
    { const: "a" },
    { const: "" },
    { in: ["a", "b"] },
    { notIn: ["a", ""] },
    { const: "a", in: ["a", "b"] },
    { minLen: 2n },
    { maxLen: 2n },
    { len: 1n },
    { pattern: "^a" },
    { prefix: "a" },
    { suffix: "c" },
    { contains: "b" },
    { notContains: "b" },
    { prefix: "a", suffix: "b", notContains: "c" },
    ...(["ipv4", "ipv6", "uuid", "tuuid", "ulid"] as const).map((rule) => ({ wellKnown: { case: rule, value: true } })),
  ].map((rules) => ({ field: "string" as const, rules: rulesOf("string", rules) })),
  ...[{ minBytes: 2n }, { maxBytes: 2n }, { lenBytes: 2n }].map((rules): Row => {
    return { field: "string", rules: rulesOf("string", rules), isLeftOut: true };
  }),
  ...(["email", "hostname", "ip", "address", "hostAndPort", "ipPrefix", "uri", "uriRef"] as const).map((rule): Row => {
    return { field: "string", rules: rulesOf("string", { wellKnown: { case: rule, value: true } }), isLeftOut: true };
  }),
  { field: "bytes", rules: rulesOf("bytes", { minLen: 2n }), isLeftOut: true },
  ...[{ const: true }, { const: false }].map((rules): Row => ({ field: "bool", rules: rulesOf("bool", rules) })),
  ...(["int32", "float", "double"] as const).flatMap((field): Row[] => {
    const given = [
      { const: 5 },
      { const: 0 },
      { in: [1, 5] },
      { notIn: [0, 1] },
      bound("gt", 1),
      bound("gte", 1),
      bound("lt", 1),
      bound("lte", 1),
      both("gte", 1, "lte", 5),
      both("gt", 1, "lt", 5),
      both("gte", 1, "lte", 1),
      both("gte", 1, "lt", 1),
      both("gt", 1, "lte", 1),
      both("gt", 5, "lt", 1),
      both("gte", 5, "lte", 1),
      both("gt", 5, "lte", 1),
      both("gte", 5, "lt", 1),
      { ...bound("lt", 6), in: [5, 6] },
    ];
    return given.map((rules) => ({ field, rules: rulesOf(field, rules) }));
  }),
  { field: "uint32", rules: rulesOf("uint32", both("gt", 4, "lt", 1)) },
  ...[
    { const: 5n },
    { const: 9007199254740993n },
    { in: [1n, 5n] },
    { in: [9223372036854775807n] },
    { notIn: [0n, 5n] },
    { notIn: [9007199254740993n] },
  ].map((rules): Row => ({ field: "int64", rules: rulesOf("int64", rules) })),
  { field: "int64", rules: rulesOf("int64", bound("gt", 1n)), isLeftOut: true },
  ...[{ const: 1 }, { in: [1, 2] }, { in: [7] }, { notIn: [0] }, { notIn: [1] }, { definedOnly: true }].map(
    (rules): Row => ({ field: "enum", rules: rulesOf("enum", rules) }),
  ),
  ...[
    { minItems: 1n },
    { maxItems: 1n },
    { unique: true },
    { items: rulesOf("string", { minLen: 2n }) },
    { items: rulesOf("string", { in: ["a"] }) },
  ].map((rules): Row => ({ field: "list of strings", rules: rulesOf("repeated", rules) })),
  { field: "list of enums", rules: rulesOf("repeated", { items: rulesOf("enum", { notIn: [0] }) }) },
  ...[
    { minPairs: 1n },
    { maxPairs: 1n },
    { keys: rulesOf("string", { minLen: 2n }) },
    { values: rulesOf("string", { in: ["a", "b"] }) },
  ].map((rules): Row => ({ field: "map of strings", rules: rulesOf("map", rules) })),
  ...[{ const: 1 }, { in: [1, 2] }, { notIn: [-1] }].map((rules): Row => {
    return { field: "map of int32", rules: rulesOf("map", { keys: rulesOf("int32", rules) }) };
  }),
  { field: "map of int32", rules: rulesOf("map", { keys: rulesOf("int32", bound("gt", 1)) }), isLeftOut: true },
  { field: "map of int64", rules: rulesOf("map", { keys: rulesOf("int64", { in: [2n] }) }) },
  { field: "map of bool", rules: rulesOf("map", { keys: rulesOf("bool", { const: true }) }) },
];

function bound(name: string, value: bigint | number): object {
  return { [name.startsWith("g") ? "greaterThan" : "lessThan"]: { case: name, value } };
}

function both(lower: string, low: number, upper: string, high: number): object {
  return { ...bound(lower, low), ...bound(upper, high) };
}

type Probe = { readonly desc: DescMessage; readonly service: DescService; readonly registry: Registry };

function define({ type = types.MESSAGE, typeName = "", isList, key }: FieldForm, rules: Rules): Probe {
  const options = create(FieldOptionsSchema);
  setExtension(options, fieldRules, create(FieldRulesSchema, rules));
  const { REPEATED: repeated, OPTIONAL: optional } = FieldDescriptorProto_Label;
  const label = isList === true || key !== undefined ? repeated : optional;
  const member = (name: string, number: number, of: FieldInit): FieldInit => {
    return { label: optional, ...of, name, jsonName: name, number };
  };
  const ofType = key === undefined ? { type, typeName } : { type: types.MESSAGE, typeName: ".probe.M.FEntry" };
  const entry: MessageInitShape<typeof DescriptorProtoSchema> = {
    name: "FEntry",
    options: { mapEntry: true },
    field: [member("key", 1, { type: key ?? types.STRING }), member("value", 2, { type: types.STRING })],
  };
  // oxfmt-ignore
  const init: MessageInitShape<typeof FileDescriptorProtoSchema> = { name: "probe.proto",
    package: "probe",
    syntax: "proto3",
    enumType: [
      { name: "E", options: { allowAlias: true },
        value: Object.entries({ ZERO: 0, ONE: 1, UNO: 1, TWO: 2 }).map(([name, number]) => ({ name, number })) },
    ],
    messageType: [{ name: "M", field: [member("f", 1, { ...ofType, label, options })],
        nestedType: key === undefined ? [] : [entry] }, { name: "Nested" }],
    service: [{ name: "S", method: [{ name: "R", inputType: ".probe.M", outputType: ".probe.M" }] }],
  };
  const registry = createFileRegistry(create(FileDescriptorProtoSchema, init), () => undefined);
  const desc = registry.getMessage("probe.M") ?? expect.unreachable("no message");
  return { desc, service: registry.getService("probe.S") ?? expect.unreachable("no service"), registry };
}

type FieldInit = MessageInitShape<typeof FieldDescriptorProtoSchema>;

/** Returns the functions with which the schema and the server accept an object with the field `f`. */
function open(form: FieldForm, rules: Rules): Readonly<Record<"schema" | "server", Accepts>> {
  const { desc, service, registry } = define(form, rules);
  const ajv = new Ajv2020({ strict: true, strictTypes: false, allowUnionTypes: true });
  ajvFormats.default(ajv);
  const input = { comments: new Map<string, string>(), useProtoFieldName: false, direction: "input" } as const;
  const schema = ajv.compile(createMessageSchema(desc, { ...input, isClosed: true, rules: validation }).schema);
  const check = validation.prepare([service], registry)(desc);
  const server = (value: unknown): boolean => {
    const message = readJson(desc, JSON.stringify(value));
    try {
      check?.(message, Object.create(null));
      return true;
    } catch {
      return false;
    }
  };
  return { schema, server };
}

type Accepts = (value: unknown) => boolean;
const named = rows.map((row) => ({ ...row, name: `${row.field}: ${describe(row.rules)}` }));

function describe({ type, required = false }: Rules): string {
  const text = JSON.stringify(type?.value ?? {}, (_, value) => (typeof value === "bigint" ? String(value) : value));
  return `${text}${required ? ", required" : ""}`;
}

test.each(named.filter(({ isLeftOut }) => !isLeftOut))(
  "for the field $name, the schema and the server accept the same values",
  ({ field, rules }) => {
    const form = fields[field];
    const accepts = open(form, rules);
    const objects = [{}, ...form.values.map((f) => ({ f }))];
    const accepted = (by: "schema" | "server"): readonly string[] =>
      objects.filter((object) => accepts[by](object)).map((object) => JSON.stringify(object));
    expect(accepted("schema")).toEqual(accepted("server"));
  },
);

test.each(named.filter(({ isLeftOut }) => isLeftOut))(
  "for the field $name, the schema accepts more values than the server",
  ({ field, rules }) => {
    const form = fields[field];
    const { schema, server } = open(form, rules);
    const values = form.values.map((f) => ({ f }));
    expect(values.filter((value) => server(value) && !schema(value))).toEqual([]);
    expect(values.filter((value) => schema(value) && !server(value))).not.toEqual([]);
  },
);
