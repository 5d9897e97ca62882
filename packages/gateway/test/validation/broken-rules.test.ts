import { create, createFileRegistry, type DescService, setExtension } from "@bufbuild/protobuf";
import {
  FieldDescriptorProto_Label,
  FieldDescriptorProto_Type,
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
import type { MessageInitShape } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { openValidation } from "../../src/validation/index.ts";
import { createTestGateway } from "../../../testing/src/gateway/test-engine.ts";

// Rules that protovalidate cannot compile, as a definition may contain them: the gateway does not start.

const validation = await openValidation();

interface Rules {
  readonly ofMessage?: MessageInitShape<typeof MessageRulesSchema>;
  readonly ofField?: MessageInitShape<typeof FieldRulesSchema>;
  readonly repeated?: true;
}

/** Returns a service whose requests have one field of type string, with these rules. */
function serviceWith({ ofMessage, ofField, repeated }: Rules): DescService {
  const options = create(MessageOptionsSchema);
  if (ofMessage) setExtension(options, message, create(MessageRulesSchema, ofMessage));
  const fieldOptions = create(FieldOptionsSchema);
  if (ofField) setExtension(fieldOptions, field, create(FieldRulesSchema, ofField));
  const label = repeated ? FieldDescriptorProto_Label.REPEATED : FieldDescriptorProto_Label.OPTIONAL;
  const text = { name: "text", jsonName: "text", number: 1, type: FieldDescriptorProto_Type.STRING, label };
  const file = create(FileDescriptorProtoSchema, {
    name: "notes.proto",
    package: "notes",
    syntax: "proto3",
    messageType: [{ name: "Note", field: [{ ...text, options: fieldOptions }], options }],
    service: [{ name: "Notes", method: [{ name: "Add", inputType: ".notes.Note", outputType: ".notes.Note" }] }],
  });
  const service = createFileRegistry(file, () => undefined).getService("notes.Notes");
  return service ?? expect.unreachable("the service is defined");
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
  ["a rule of another type", { ofField: { type: { case: "int32", value: {} } } }, /^- notes\.Note: /m],
  ["a oneof of an unknown field", { ofMessage: { oneof: [{ fields: ["title"] }] } }, /^- notes\.Note: .*title/m],
];

test.for(rows)("the gateway does not start with %s that cannot be compiled", ([, rules, problem]) => {
  expect(() => start(rules)).toThrow(
    expect.objectContaining({ code: "ERR_DESCRIPTORS", message: expect.stringMatching(problem) }),
  );
});

test("the gateway starts with rules that can be compiled", () => {
  const ofField: Rules["ofField"] = { celExpression: ["this != 'x'"], type: { case: "string", value: { minLen: 1n } } };
  expect(() => start({ ofField, ofMessage: { celExpression: ["size(this.text) > 1"] } })).not.toThrow();
});
