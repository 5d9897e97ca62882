import type { DescriptorProto, FileDescriptorProto } from "@bufbuild/protobuf/wkt";
import { copyWith } from "./complete-files.ts";
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
function* declaredTypes({ package: scope, messageType, enumType }: FileDescriptorProto): Generator<string> {
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

/** The number of the field `dependency` in SourceCodeInfo paths. */
const dependencyNumber = 3;

/** Removes imports that only hidden elements need. */
export class DroppedImports {
  readonly #files: ReadonlyMap<string, FileDescriptorProto>;

  constructor(files: readonly FileDescriptorProto[]) {
    this.#files = new Map(files.map((file) => [file.name, file]));
  }

  /**
   * Returns the file `visible` without the imports that only hidden elements need. Keeps imports that declare
   * extensions, because options may use these extensions. After a removal, no import is public, because `completeFiles`
   * adds the imports that other files need.
   */
  removeFrom(file: FileDescriptorProto, visible: FileDescriptorProto, positions: ListPositions): FileDescriptorProto {
    const before = referredTypes(file);
    const after = referredTypes(visible);
    if (before.size === after.size) return visible;
    const kept = positions.filter([dependencyNumber], file.dependency, (name) => {
      const types = this.#typesOf(name);
      return types === undefined || !types.some((type) => before.has(type)) || types.some((type) => after.has(type));
    });
    return copyWith(visible, { dependency: kept.map(([name]) => name), publicDependency: [], weakDependency: [] });
  }

  /** Returns the types that an import provides, or `undefined` if the import must be kept. */
  #typesOf(name: string): readonly string[] | undefined {
    const names = new Set([name]);
    const types: string[] = [];
    for (const each of names) {
      const file = this.#files.get(each);
      if (file === undefined || hasExtensions(file)) return undefined;
      types.push(...declaredTypes(file));
      for (const index of file.publicDependency) names.add(file.dependency[index] ?? "");
    }
    return types;
  }
}

function hasExtensions({ extension, messageType }: FileDescriptorProto): boolean {
  const messages = [...messageType];
  for (const { nestedType } of messages) messages.push(...nestedType);
  return extension.length > 0 || messages.some((message) => message.extension.length > 0);
}

/**
 * Translates SourceCodeInfo paths after list items were removed. A path alternates field numbers and list indexes
 * (descriptor.proto), such as `[4, 0, 2, 3]` for the first message's fourth field.
 */
export class ListPositions {
  /** For each changed list, by its old path: the new indexes of kept items, by old index. */
  readonly #lists = new Map<string, ReadonlyMap<number, number>>();

  /** Returns the items to keep, with their old indexes. @param path - the list's old path */
  filter<Item>(
    path: readonly number[],
    items: readonly Item[],
    isKept: (item: Item, at: number) => boolean,
  ): readonly (readonly [Item, number])[] {
    const kept = items.map((item, at) => [item, at] as const).filter(([item, at]) => isKept(item, at));
    if (kept.length < items.length) this.#lists.set(path.join(), new Map(kept.map(([, old], at) => [old, at])));
    return kept;
  }

  /** Returns an element's new path, or `undefined` if the element was removed. */
  translate(path: number[]): number[] | undefined {
    if (this.#lists.size === 0) return path;
    const translated = [...path];
    for (let at = 1; at < path.length; at += 2) {
      const list = this.#lists.get(path.slice(0, at).join());
      const [old] = path.slice(at);
      if (list === undefined || old === undefined) continue;
      const position = list.get(old);
      if (position === undefined) return undefined;
      translated[at] = position;
    }
    return translated;
  }
}
