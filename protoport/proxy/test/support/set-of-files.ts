import { create, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { type FileDescriptorProtoSchema, FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";

/** Returns a binary google.protobuf.FileDescriptorSet with only these files, which may be incomplete. */
export const setOfFiles = (...file: MessageInitShape<typeof FileDescriptorProtoSchema>[]): Uint8Array =>
  toBinary(FileDescriptorSetSchema, create(FileDescriptorSetSchema, { file }));
