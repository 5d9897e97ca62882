import { create } from "@bufbuild/protobuf";
import { type FileDescriptorProto, type FileDescriptorSet, FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { clipped } from "../errors/index.ts";

/** How deep imports may be nested. 200: ten times as deep as those of Google's APIs, and far from the end of the stack. */
const importDepthMax = 200;

/**
 * Returns files, each after those that it imports, as registries want them. All that is imported must be among them.
 *
 * @throws Error if a file imports itself, or imports are nested too deep
 */
export function sortFiles(files: ReadonlyMap<string, FileDescriptorProto>): FileDescriptorSet {
  const sorted = new Set<FileDescriptorProto>();
  const visit = (name: string, way: readonly string[]): void => {
    const file = files.get(name);
    if (file === undefined || sorted.has(file)) return;
    if (way.includes(name)) {
      throw new Error(`import cycle: ${clipped([...way.slice(way.indexOf(name)), name].join(" -> "))}`);
    }
    if (way.length >= importDepthMax) {
      throw new Error(`imports are nested more than ${importDepthMax} levels deep, at ${clipped(name)}`);
    }
    for (const imported of file.dependency) visit(imported, [...way, name]);
    sorted.add(file);
  };
  for (const name of files.keys()) visit(name, []);
  return create(FileDescriptorSetSchema, { file: [...sorted] });
}
