import { createRegistry, type DescFile, type Registry } from "@bufbuild/protobuf";
import {
  file_google_protobuf_any,
  file_google_protobuf_duration,
  file_google_protobuf_empty,
  file_google_protobuf_field_mask,
  file_google_protobuf_struct,
  file_google_protobuf_timestamp,
  file_google_protobuf_wrappers,
} from "@bufbuild/protobuf/wkt";

/** Returns the types that an Any may contain by default: well-known types, and all types in the files and imports. */
export function createReachableRegistry(defined: Iterable<{ readonly file: DescFile }>): Registry {
  const files = new Set<DescFile>();
  const visitFile = (file: DescFile): void => {
    if (files.has(file)) return;
    files.add(file);
    file.dependencies.forEach(visitFile);
  };
  for (const { file } of defined) visitFile(file);
  return createRegistry(...wellKnown, ...files);
}

const wellKnown: readonly DescFile[] = [
  file_google_protobuf_any,
  file_google_protobuf_duration,
  file_google_protobuf_empty,
  file_google_protobuf_field_mask,
  file_google_protobuf_struct,
  file_google_protobuf_timestamp,
  file_google_protobuf_wrappers,
];
