import { create, type MessageInitShape, setExtension } from "@bufbuild/protobuf";
import {
  FieldDescriptorProto_Label,
  FieldDescriptorProto_Type,
  FieldOptionsSchema,
  type FileDescriptorProtoSchema,
} from "@bufbuild/protobuf/wkt";
import { field, FieldRulesSchema } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";

/** Returns the definition for `notes.Notes`, whose request has a string field for each rule. */
export function notesWith(
  ...rules: readonly MessageInitShape<typeof FieldRulesSchema>[]
): MessageInitShape<typeof FileDescriptorProtoSchema> {
  return {
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
  };
}
