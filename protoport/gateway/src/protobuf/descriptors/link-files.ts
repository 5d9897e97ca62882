import {
  createFileRegistry,
  createRegistry,
  type DescEnum,
  type DescFile,
  type DescMessage,
  type Registry,
} from "@bufbuild/protobuf";
import { nestedTypes } from "@bufbuild/protobuf/reflect";
import type { FileDescriptorProto } from "@bufbuild/protobuf/wkt";
import { messageOf, toShortLine } from "../../http/index.ts";
import { copyWith } from "./complete-files.ts";
import { referredTypes } from "./needed-files.ts";

/**
 * Creates a registry from complete files, each after its imports. Unlike `createFileRegistry`, yields after each file.
 * Invalid files that are not needed are omitted.
 *
 * @throws Error with protobuf-es' message if a needed file is invalid
 */
export function* linkFiles(
  protos: readonly FileDescriptorProto[],
  isNeeded: (name: string) => boolean,
): Generator<number, Registry> {
  const files = new Map<string, DescFile>();
  const types = new Map<string, DescMessage | DescEnum>();
  for (const proto of protos) {
    yield 0;
    let file: DescFile;
    try {
      file = linkFile(proto, files, types);
    } catch (error) {
      if (isNeeded(proto.name)) throw error;
      continue;
    }
    files.set(proto.name, file);
    for (const type of nestedTypes(file)) {
      if (type.kind === "message" || type.kind === "enum") types.set(type.typeName, type);
    }
  }
  return createRegistry(...files.values());
}

function linkFile(
  complete: FileDescriptorProto,
  files: ReadonlyMap<string, DescFile>,
  types: ReadonlyMap<string, DescMessage | DescEnum>,
): DescFile {
  // Imports of omitted files are removed.
  const proto = copyWith(complete, { dependency: complete.dependency.filter((name) => files.has(name)) });
  const needed = [...referredTypes(proto)].flatMap((name) => types.get(name) ?? []);
  const byFile = Map.groupBy(needed, ({ file }) => file);
  // Returns an import with only the types that the file uses, because `createFileRegistry` adds all types in an import.
  const resolve = (name: string): DescFile | undefined => {
    const imported = files.get(name);
    if (imported === undefined) return undefined;
    const used = byFile.get(imported) ?? [];
    return {
      ...imported,
      dependencies: [],
      messages: used.filter((type) => type.kind === "message"),
      enums: used.filter((type) => type.kind === "enum"),
      extensions: [],
      services: [],
    };
  };
  let file: DescFile | undefined;
  try {
    file = createFileRegistry(proto, resolve).getFile(proto.name);
  } catch (error) {
    throw new Error(toShortLine(messageOf(error)), { cause: error });
  }
  if (file === undefined) throw new TypeError(`the registry has no file ${toShortLine(proto.name)}`);
  return Object.assign(file, { dependencies: proto.dependency.flatMap((name) => files.get(name) ?? []) });
}
