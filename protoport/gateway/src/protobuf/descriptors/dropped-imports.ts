import type { FileDescriptorProto } from "@bufbuild/protobuf/wkt";
import { copyWith } from "./complete-files.ts";
import type { ListPositions } from "./list-positions.ts";
import { declaredTypes, referredTypes } from "./needed-files.ts";

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
