import { create } from "@bufbuild/protobuf";
import { type FileDescriptorProto, type FileDescriptorSet, FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { toShortLine } from "../../http/index.ts";

/** Maximum length of an import chain, which protects the stack. Google's APIs need a tenth of this limit. */
const importDepthMax = 200;

/**
 * Sorts files so that each file comes after its imports, as registries require. The map must contain all imports.
 *
 * @throws Error for an import cycle, or imports that are nested too deep
 */
export function sortFiles(files: ReadonlyMap<string, FileDescriptorProto>): FileDescriptorSet {
  const sorted = new Set<FileDescriptorProto>();
  const visit = (name: string, importers: readonly string[]): void => {
    const file = files.get(name);
    if (file === undefined || sorted.has(file)) return;
    if (importers.includes(name)) {
      throw new Error(`import cycle: ${toShortLine([...importers.slice(importers.indexOf(name)), name].join(" -> "))}`);
    }
    if (importers.length >= importDepthMax) {
      throw new Error(`imports are nested more than ${importDepthMax} levels deep, at ${toShortLine(name)}`);
    }
    for (const imported of file.dependency) visit(imported, [...importers, name]);
    sorted.add(file);
  };
  for (const name of files.keys()) visit(name, []);
  return create(FileDescriptorSetSchema, { file: [...sorted] });
}
