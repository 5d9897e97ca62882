// oxfmt-ignore
import { create, createFileRegistry, type DescFile, type DescMessage, type DescService, type FileRegistry,
  type MessageInitShape } from "@bufbuild/protobuf";
// oxfmt-ignore
import { FieldDescriptorProto_Label, FieldDescriptorProto_Type, type FileDescriptorProto, FileDescriptorProtoSchema
} from "@bufbuild/protobuf/wkt";

/** A definition that a test writes as a descriptor. */
export type FileInit = Exclude<MessageInitShape<typeof FileDescriptorProtoSchema>, FileDescriptorProto>;

export type FieldInit = NonNullable<NonNullable<FileInit["messageType"]>[number]["field"]>[number];

export function stringField(name: string, number: number): FieldInit {
  const label = FieldDescriptorProto_Label.OPTIONAL;
  return { name, jsonName: name, number, label, type: FieldDescriptorProto_Type.STRING };
}

/** Returns a file's service by its full name. @param imported - the file for all imports */
export function serviceIn(file: FileInit | FileDescriptorProto, typeName: string, imported?: DescFile): DescService {
  const service = registryOf(file, imported).getService(typeName);
  if (service === undefined) throw new Error(`the file has no service ${typeName}`);
  return service;
}

export function messageIn(file: FileInit, typeName: string): DescMessage {
  const message = registryOf(file, undefined).getMessage(typeName);
  if (message === undefined) throw new Error(`the file has no message ${typeName}`);
  return message;
}

const registryOf = (file: FileInit | FileDescriptorProto, imported: DescFile | undefined): FileRegistry =>
  createFileRegistry(create(FileDescriptorProtoSchema, file), () => imported);
