import { create, createFileRegistry, type DescService, type MessageInitShape, setExtension } from "@bufbuild/protobuf";
import {
  FieldDescriptorProto_Label,
  FieldDescriptorProto_Type,
  FieldDescriptorProtoSchema,
  FieldOptionsSchema,
  FileDescriptorProtoSchema,
  MessageOptionsSchema,
} from "@bufbuild/protobuf/wkt";
import {
  field,
  FieldRulesSchema,
  message,
  MessageRulesSchema,
} from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";

type FieldRules = MessageInitShape<typeof FieldRulesSchema>;

const text = (value: Extract<FieldRules["type"], { case?: "string" }>["value"]): FieldRules => ({
  type: { case: "string", value },
});
const number = (value: Extract<FieldRules["type"], { case?: "int32" }>["value"]): FieldRules => ({
  type: { case: "int32", value },
});

/**
 * The form's fields, each with its rule and a valid value. With the rules "3", only the first three fields have a rule.
 */
const fields: readonly (readonly [string, FieldRules, string | number])[] = [
  ["name", text({ minLen: 2n, maxLen: 50n }), "Ada Lovelace"],
  ["email", text({ wellKnown: { case: "email", value: true } }), "ada@example.com"],
  ["age", number({ greaterThan: { case: "gte", value: 18 }, lessThan: { case: "lt", value: 130 } }), 36],
  ["zip", text({ pattern: "^[0-9]{5}$" }), "12345"],
  ["id", text({ wellKnown: { case: "uuid", value: true } }), "0f8fad5b-d9cb-469f-a165-70867728950e"],
  ["country", text({ len: 2n }), "GB"],
  ["plan", text({ in: ["free", "team", "company"] }), "team"],
  ["site", text({ wellKnown: { case: "uri", value: true } }), "https://ada.example/notes"],
  ["phone", text({ prefix: "+", maxLen: 20n }), "+441234567"],
  ["seats", number({ greaterThan: { case: "gt", value: 0 } }), 3],
  ["level", number({ in: [1, 2, 3] }), 2],
  ["note", text({ maxBytes: 1000n }), "The engine has no pretensions to originate anything."],
];

/** A valid form in JSON. */
export const form: Readonly<Record<string, string | number>> = Object.fromEntries(
  fields.map(([name, , value]) => [name, value]),
);

/** CEL rules that compare fields, as standard rules cannot. */
const expressions = ["this.name != this.email", "this.age > this.level", "this.note.size() > this.seats"];

/**
 * Returns a service whose request has twelve fields.
 *
 * @param rules - "3" or "12" for three or twelve standard rules, and "cel" for three CEL rules. With any other value,
 * the service has no rules
 */
export function formService(rules: string): DescService {
  const ruled = rules === "12" ? 12 : rules === "3" ? 3 : 0;
  const options = create(MessageOptionsSchema);
  if (rules === "cel") setExtension(options, message, create(MessageRulesSchema, { celExpression: expressions }));
  const file = create(FileDescriptorProtoSchema, {
    name: "form.proto",
    package: "form",
    syntax: "proto3",
    messageType: [{ name: "Form", field: fields.map((_, at) => fieldAt(at, at < ruled)), options }, { name: "Saved" }],
    service: [{ name: "Forms", method: [{ name: "Save", inputType: ".form.Form", outputType: ".form.Saved" }] }],
  });
  const service = createFileRegistry(file, () => undefined).getService("form.Forms");
  if (service === undefined) throw new Error("the file has the service");
  return service;
}

function fieldAt(at: number, isRuled: boolean): MessageInitShape<typeof FieldDescriptorProtoSchema> {
  const [name = "", rules = {}, value] = fields[at] ?? [];
  const options = create(FieldOptionsSchema);
  if (isRuled) setExtension(options, field, create(FieldRulesSchema, rules));
  const type = typeof value === "number" ? FieldDescriptorProto_Type.INT32 : FieldDescriptorProto_Type.STRING;
  return { name, jsonName: name, number: at + 1, type, label: FieldDescriptorProto_Label.OPTIONAL, options };
}
