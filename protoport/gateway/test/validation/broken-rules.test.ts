import { create, createFileRegistry, type DescFile, type DescService, setExtension } from "@bufbuild/protobuf";
// oxfmt-ignore
import { FieldDescriptorProto_Label, FieldDescriptorProto_Type, type FieldDescriptorProtoSchema, FieldOptionsSchema,
  file_google_protobuf_struct, file_google_protobuf_wrappers, FileDescriptorProtoSchema, MessageOptionsSchema
} from "@bufbuild/protobuf/wkt";
// oxfmt-ignore
import { field, FieldRulesSchema, message, MessageRulesSchema
} from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { openValidation } from "../../src/validation/index.ts";
import { createTestGateway } from "../../../testing/src/gateway/test-gateway.ts";

// A definition may contain rules that protovalidate cannot compile, with which the gateway does not start.

const validation = await openValidation();

interface Rules {
  readonly ofMessage?: MessageInitShape<typeof MessageRulesSchema>;
  readonly ofField?: MessageInitShape<typeof FieldRulesSchema>;
  readonly repeated?: true;
  /** Whether requests contain the message with the rules. */
  readonly isNested?: true;
  /** The rules of the message that contains the message. */
  readonly ofOuter?: MessageInitShape<typeof MessageRulesSchema>;
}

/**
 * Returns a service whose requests have a string field with these rules, and a map, a wrapper and a value without
 * rules.
 */
function serviceWith({ ofMessage, ofField, repeated, isNested, ofOuter }: Rules): DescService {
  const options = create(MessageOptionsSchema);
  if (ofMessage) setExtension(options, message, create(MessageRulesSchema, ofMessage));
  const outerOptions = create(MessageOptionsSchema);
  if (ofOuter) setExtension(outerOptions, message, create(MessageRulesSchema, ofOuter));
  const fieldOptions = create(FieldOptionsSchema);
  if (ofField) setExtension(fieldOptions, field, create(FieldRulesSchema, ofField));
  const label = repeated ? FieldDescriptorProto_Label.REPEATED : FieldDescriptorProto_Label.OPTIONAL;
  const plain = { number: 1, type: FieldDescriptorProto_Type.STRING, label: FieldDescriptorProto_Label.OPTIONAL };
  const text = { ...plain, name: "text", jsonName: "text", label };
  const inputType = isNested ? ".notes.Notebook" : ".notes.Note";
  // oxfmt-ignore
  const file = create(FileDescriptorProtoSchema, { name: "notes.proto",
    package: "notes",
    syntax: "proto3",
    dependency: ["google/protobuf/wrappers.proto", "google/protobuf/struct.proto"],
    messageType: [{ name: "Note", field: [{ ...text, options: fieldOptions },
          { ...messageField("labels", 2, ".notes.Note.LabelsEntry"), label: FieldDescriptorProto_Label.REPEATED },
          messageField("limit", 3, ".google.protobuf.Int32Value"),
          messageField("any_value", 4, ".google.protobuf.Value")], nestedType: [
          { name: "LabelsEntry",
            field: [
              { ...plain, name: "key" },
              { ...plain, name: "value", number: 2 },
            ],
            options: { mapEntry: true },
          },
        ], options }, { name: "Notebook", field: [messageField("note", 1, ".notes.Note")], options: outerOptions }],
    service: [{ name: "Notes", method: [{ name: "Add", inputType, outputType: ".notes.Note" }] }],
  });
  const files = [file_google_protobuf_wrappers, file_google_protobuf_struct];
  const find = (name: string): DescFile | undefined => files.find((each) => `${each.name}.proto` === name);
  const service = createFileRegistry(file, find).getService("notes.Notes");
  return service ?? expect.unreachable("the service is defined");
}

function messageField(
  name: string,
  number: number,
  typeName: string,
): MessageInitShape<typeof FieldDescriptorProtoSchema> {
  const type = FieldDescriptorProto_Type.MESSAGE;
  return { name, jsonName: name, number, type, typeName, label: FieldDescriptorProto_Label.OPTIONAL };
}

function start(rules: Rules): unknown {
  const service = serviceWith(rules);
  return createTestGateway({ routes: (router) => router.service(service, {}), validation });
}

const rows: readonly (readonly [string, Rules, RegExp])[] = [
  ["an expression of a message", { ofMessage: { celExpression: ["this.text ="] } }, /^- notes\.Note: /m],
  ["a rule of a message", { ofMessage: { cel: [{ id: "a", expression: "(" }] } }, /^- notes\.Note: /m],
  ["an expression of a field", { ofField: { celExpression: ["this +"] } }, /^- notes\.Note\.text: /m],
  [
    "an expression of list items",
    { repeated: true, ofField: { type: { case: "repeated", value: { items: { celExpression: [")"] } } } } },
    /^- notes\.Note\.text: /m,
  ],
  ["a rule for another field type", { ofField: { type: { case: "int32", value: {} } } }, /^- notes\.Note: /m],
  ["a oneof with a line feed", { ofMessage: { oneof: [{ fields: ["a\nb"] }] } }, /^- notes\.Note: .*a b/m],
  ["a oneof of an unknown field", { ofMessage: { oneof: [{ fields: ["title"] }] } }, /^- notes\.Note: .*title/m],
];

test.for(rows)("the gateway does not start if %s cannot be compiled", ([, rules, problem]) => {
  expect(() => start(rules)).toThrow(
    expect.objectContaining({ code: "ERR_DESCRIPTORS", message: expect.stringMatching(problem) }),
  );
  // One problem, on one line.
  expect(() => start(rules)).toThrow(/^[^\n]*\n[^\n]*$/);
});

// oxfmt-ignore
const typeErrors: readonly (readonly [string, Rules, RegExp])[] = [
  ["reads a missing field", { ofMessage: { celExpression: ["this.title == 'x'"] } }, /Note: field not found: title/],
  ["compares a string with a number", { ofField: { celExpression: ["this > 3"] } }, /Note: .*'_>_'.*\(string, int\)/],
  ["returns a number", { ofMessage: { celExpression: ["size(this.text)"] } }, /Note: .*outputs bigint, wanted/],
  ["calls an unknown function", { ofField: { celExpression: ["this.isNice()"] } }, /Note: unbound function: isNice/],
  ["uses an unknown name", { ofField: { celExpression: ["that == 'x'"] } }, /Note: unresolved attribute/],
  ["reads a missing field when another field is set",
    { ofMessage: { celExpression: ["this.text == '' || this.title == 'x'"] } }, /Note: field not found: title/],
  ["reads a missing field when another field is not set",
    { ofMessage: { celExpression: ["this.text != '' || this.title == 'x'"] } }, /Note: field not found: title/],
];

test.for(typeErrors)("if a rule's expression %s, the gateway does not start", ([, rules, problem]) => {
  expect(() => start(rules)).toThrow(
    expect.objectContaining({ code: "ERR_DESCRIPTORS", message: expect.stringMatching(problem) }),
  );
});

test("a type error in a nested message is listed once", () => {
  const celExpression = ["this.title == 'x'"];
  const text = "cannot use the validation rules:\n- notes.Note: field not found: title";
  for (const ofOuter of [{}, { celExpression: ["true"] }])
    expect(() => start({ ofMessage: { celExpression }, isNested: true, ofOuter })).toThrow(
      expect.objectContaining({ message: text }),
    );
});

const dependingOnMessages: readonly (readonly [string, Rules])[] = [
  ["divides by a field", { ofMessage: { celExpression: ["1 / size(this.text) > 0"] } }],
  ["reads a map's value with brackets", { ofMessage: { celExpression: ["this.labels['x'] == 'y'"] } }],
  ["reads a map's value with a dot", { ofMessage: { celExpression: ["this.labels.x == 'y'"] } }],
  ["reads an element of a list", { repeated: true, ofMessage: { celExpression: ["this.text[1] == 'y'"] } }],
  ["compares a wrapper", { ofMessage: { celExpression: ["this.limit > 3"] } }],
  ["compares a value of any type", { ofMessage: { celExpression: ["this.any_value > 3"] } }],
];

test.for(dependingOnMessages)("if a rule's expression %s, the gateway starts", ([, rules]) => {
  expect(() => start(rules)).not.toThrow();
});

test("the gateway starts with rules that can be compiled", () => {
  const ofField: Rules["ofField"] = { celExpression: ["this != 'x'"], type: { case: "string", value: { minLen: 1n } } };
  expect(() => start({ ofField, ofMessage: { celExpression: ["size(this.text) > 1"] } })).not.toThrow();
});
