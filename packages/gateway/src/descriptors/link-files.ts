import {
  createFileRegistry,
  createRegistry,
  type DescEnum,
  type DescFile,
  type DescMessage,
  type Registry,
} from "@bufbuild/protobuf";
import { nestedTypes } from "@bufbuild/protobuf/reflect";
import type { DescriptorProto, FileDescriptorProto } from "@bufbuild/protobuf/wkt";
import { messageOf, toShortLine } from "../errors/index.ts";

/**
 * Links files to a registry, which `createFileRegistry` can do in a single turn only. Yields after each file.
 *
 * @param protos - complete files, each after the files that it imports
 * @throws Error with the message of protobuf-es
 */
export function* linkFiles(protos: readonly FileDescriptorProto[]): Generator<number, Registry> {
  const files = new Map<string, DescFile>();
  const types = new Map<string, DescMessage | DescEnum>();
  for (const proto of protos) {
    const file = linkFile(proto, files, types);
    files.set(proto.name, file);
    for (const type of nestedTypes(file)) {
      if (type.kind === "message" || type.kind === "enum") types.set(type.typeName, type);
    }
    yield 0;
  }
  return createRegistry(...files.values());
}

function linkFile(
  proto: FileDescriptorProto,
  files: ReadonlyMap<string, DescFile>,
  types: ReadonlyMap<string, DescMessage | DescEnum>,
): DescFile {
  const needed = [...typeNamesIn(proto)].flatMap((name) => types.get(name) ?? []);
  const byFile = Map.groupBy(needed, ({ file }) => file);
  // Only what the file uses is imported, because all types of all its imports would be added for each file.
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

/** Returns the names of all types that a file refers to. */
function typeNamesIn({ messageType, extension, service }: FileDescriptorProto): ReadonlySet<string> {
  const names = new Set<string>();
  const add = (name: string): unknown => names.add(name.startsWith(".") ? name.slice(1) : name);
  const addFields = (fields: DescriptorProto["field"]): void => {
    for (const { typeName, extendee } of fields) for (const name of [typeName, extendee]) if (name !== "") add(name);
  };
  const messages = [...messageType];
  // The loop also visits the messages that it adds.
  for (const message of messages) {
    addFields(message.field);
    addFields(message.extension);
    messages.push(...message.nestedType);
  }
  addFields(extension);
  for (const { method } of service)
    for (const { inputType, outputType } of method) [inputType, outputType].forEach(add);
  return names;
}
