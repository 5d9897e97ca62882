import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  FieldDescriptorProto_Label,
  FieldDescriptorProto_Type,
  type FileDescriptorProto,
  type FileDescriptorProtoSchema,
} from "@bufbuild/protobuf/wkt";

/** A definition that a test writes as a descriptor. */
export type FileInit = Exclude<MessageInitShape<typeof FileDescriptorProtoSchema>, FileDescriptorProto>;

/** A message field in a {@link FileInit}. */
export type FieldInit = NonNullable<NonNullable<FileInit["messageType"]>[number]["field"]>[number];

/** Returns a string field. */
export function stringField(name: string, number: number): FieldInit {
  return {
    name,
    jsonName: name,
    number,
    label: FieldDescriptorProto_Label.OPTIONAL,
    type: FieldDescriptorProto_Type.STRING,
  };
}
