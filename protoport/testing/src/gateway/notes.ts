import { create, type MessageInitShape, setExtension } from "@bufbuild/protobuf";
// oxfmt-ignore
import { FieldDescriptorProto_Label, FieldDescriptorProto_Type, FieldDescriptorProtoSchema, FieldOptionsSchema,
  type FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
// oxfmt-ignore
import { field, FieldRulesSchema, predefined, PredefinedRulesSchema
} from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";

type File = MessageInitShape<typeof FileDescriptorProtoSchema>;

/** Returns the definition for `notes.Notes`, whose request has a string field for each rule. */
export const notesWith = (...rules: readonly MessageInitShape<typeof FieldRulesSchema>[]): File => ({
  name: "notes.proto",
  package: "notes",
  syntax: "proto3",
  dependency: ["buf/validate/validate.proto"],
  messageType: [
    {
      name: "Note",
      field: rules.map((rule, at) => {
        const options = create(FieldOptionsSchema);
        setExtension(options, field, create(FieldRulesSchema, rule));
        const name = `text${String(at)}`;
        const type = FieldDescriptorProto_Type.STRING;
        return { name, jsonName: name, number: at + 1, type, label: FieldDescriptorProto_Label.OPTIONAL, options };
      }),
    },
  ],
  service: [{ name: "Notes", method: [{ name: "Add", inputType: ".notes.Note", outputType: ".notes.Note" }] }],
});

/** Adds the extension `notes.short`, a string rule that an expression evaluates. */
export function withPredefined(file: File, expression: string = "size(this) < 9"): File {
  const options = create(FieldOptionsSchema);
  setExtension(options, predefined, create(PredefinedRulesSchema, { cel: [{ id: "short", expression }] }));
  const { OPTIONAL: label } = FieldDescriptorProto_Label;
  const { BOOL: type } = FieldDescriptorProto_Type;
  const short = { name: "short", number: 50_000, extendee: ".buf.validate.StringRules", label, type, options };
  return { ...file, syntax: "proto2", extension: [create(FieldDescriptorProtoSchema, short)] };
}
