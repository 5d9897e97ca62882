import { create, type DescFile, toBinary } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";

/** Returns a binary google.protobuf.FileDescriptorSet with files and all their imports, as buf writes it. */
export function descriptorSetOf(...files: readonly DescFile[]): Uint8Array {
  const all = new Set<DescFile>();
  const add = (file: DescFile): void => {
    file.dependencies.forEach(add);
    all.add(file);
  };
  files.forEach(add);
  const set = create(FileDescriptorSetSchema, { file: [...all].map(({ proto }) => proto) });
  return toBinary(FileDescriptorSetSchema, set);
}
