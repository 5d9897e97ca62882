import type { DescriptorProto, FileDescriptorProto } from "@bufbuild/protobuf/wkt";
import { joinNames } from "./validate-files.ts";

/**
 * Returns the files that declare services, and the files with types that they use, recursively. Without services, all
 * files are needed. Yields after each file. The other files may be invalid, because only options can use their types.
 */
export function* neededFiles(
  files: readonly FileDescriptorProto[],
): Generator<number, ReadonlySet<FileDescriptorProto>> {
  const declaring = new Map<string, FileDescriptorProto[]>();
  for (const file of files) {
    for (const name of declaredTypes(file)) {
      const others = declaring.get(name);
      if (others === undefined) declaring.set(name, [file]);
      else if (others.at(-1) !== file) others.push(file);
    }
    yield 0;
  }
  const needed = new Set(files.filter(({ service }) => service.length > 0));
  for (const file of needed) {
    for (const name of referredTypes(file)) for (const owner of declaring.get(name) ?? []) needed.add(owner);
    yield 0;
  }
  return needed.size === 0 ? new Set(files) : needed;
}

/** Returns the full names of the types that a file uses, without a leading dot. */
export function referredTypes({ messageType, extension, service }: FileDescriptorProto): ReadonlySet<string> {
  const names = new Set<string>();
  const add = (name: string): unknown => names.add(name.startsWith(".") ? name.slice(1) : name);
  const addFields = (fields: DescriptorProto["field"]): void => {
    for (const { typeName, extendee } of fields) for (const name of [typeName, extendee]) if (name !== "") add(name);
  };
  const messages = [...messageType];
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

/** Returns the full names of a file's messages and enums. */
export function* declaredTypes({ package: scope, messageType, enumType }: FileDescriptorProto): Generator<string> {
  const messages = messageType.map((message) => ({ message, typeName: joinNames(scope, message.name) }));
  for (const { name } of enumType) yield joinNames(scope, name);
  for (const { message, typeName } of messages) {
    yield typeName;
    for (const { name } of message.enumType) yield joinNames(typeName, name);
    messages.push(
      ...message.nestedType.map((nested) => ({ message: nested, typeName: joinNames(typeName, nested.name) })),
    );
  }
}
