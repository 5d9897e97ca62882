import type { DescEnum, DescField, DescMessage, DescMethod, DescService } from "@bufbuild/protobuf";
import { fromBinary } from "@bufbuild/protobuf";
import {
  type DescriptorProto,
  DescriptorProtoSchema,
  type EnumDescriptorProto,
  EnumDescriptorProtoSchema,
  type FileDescriptorProto,
  FileDescriptorProtoSchema,
  FileDescriptorSetSchema,
  ServiceDescriptorProtoSchema,
} from "@bufbuild/protobuf/wkt";

/**
 * The comments of a definition, by the full name of what they stand at: `pkg.Message`,
 * `pkg.Message.field`, `pkg.Enum`, `pkg.Enum.VALUE`, `pkg.Service`, `pkg.Service.Method`.
 */
export type Comments = ReadonlyMap<string, string>;

/**
 * Reads the comments out of a FileDescriptorSet that has source info.
 *
 * Generated code carries descriptors without their comments, so they come by another way: the file that
 * `buf build -o definition.binpb` writes, or `protoc --include_source_info --descriptor_set_out`.
 *
 * @throws Error when the bytes are no FileDescriptorSet
 */
export function readComments(fileDescriptorSet: Uint8Array): Comments {
  return commentsOfFiles(fromBinary(FileDescriptorSetSchema, fileDescriptorSet).file);
}

/** The comments of files; none of a file that has no source info. */
export function commentsOfFiles(files: readonly FileDescriptorProto[]): Comments {
  return new Map(files.flatMap((file) => [...commentsOfFile(file)]));
}

/** The comment at a descriptor; `undefined` when there is none. */
export function commentOf(
  comments: Comments,
  desc: DescMessage | DescField | DescEnum | DescEnum["values"][number] | DescService | DescMethod,
): string | undefined {
  return comments.get("typeName" in desc ? desc.typeName : `${desc.parent.typeName}.${desc.name}`);
}

// Paths of descriptor.proto's SourceCodeInfo: field numbers and indexes, from the file down.
const inFile = FileDescriptorProtoSchema.field;
const inMessage = DescriptorProtoSchema.field;
const inEnum = EnumDescriptorProtoSchema.field;
const inService = ServiceDescriptorProtoSchema.field;

function commentsOfFile(file: FileDescriptorProto): Comments {
  const names = new Map<string, string>();
  const prefix = file.package === "" ? "" : `${file.package}.`;
  file.messageType.forEach((message, at) => nameMessage(names, message, prefix, [inFile.messageType.number, at]));
  file.enumType.forEach((desc, at) => nameEnum(names, desc, prefix, [inFile.enumType.number, at]));
  file.service.forEach((service, at) => {
    const path = [inFile.service.number, at];
    names.set(path.join(), prefix + service.name);
    service.method.forEach((method, index) => {
      names.set([...path, inService.method.number, index].join(), `${prefix}${service.name}.${method.name}`);
    });
  });
  const comments = new Map<string, string>();
  for (const location of file.sourceCodeInfo?.location ?? []) {
    const name = names.get(location.path.join());
    const text = trimComment(location.leadingComments) || trimComment(location.trailingComments);
    if (name !== undefined && text !== "") comments.set(name, text);
  }
  return comments;
}

function nameMessage(
  names: Map<string, string>,
  message: DescriptorProto,
  prefix: string,
  path: readonly number[],
): void {
  const name = prefix + message.name;
  names.set(path.join(), name);
  message.field.forEach((field, at) => {
    names.set([...path, inMessage.field.number, at].join(), `${name}.${field.name}`);
  });
  message.nestedType.forEach((nested, at) => {
    nameMessage(names, nested, `${name}.`, [...path, inMessage.nestedType.number, at]);
  });
  message.enumType.forEach((nested, at) => {
    nameEnum(names, nested, `${name}.`, [...path, inMessage.enumType.number, at]);
  });
}

function nameEnum(
  names: Map<string, string>,
  desc: EnumDescriptorProto,
  prefix: string,
  path: readonly number[],
): void {
  names.set(path.join(), prefix + desc.name);
  desc.value.forEach((value, at) => {
    names.set([...path, inEnum.value.number, at].join(), `${prefix}${desc.name}.${value.name}`);
  });
}

// The text behind "//" begins with the space that stands there for the eye.
function trimComment(text: string): string {
  return text
    .split(/\r?\n/)
    .map((line) => line.replace(/^ /, "").trimEnd())
    .join("\n")
    .trim();
}
