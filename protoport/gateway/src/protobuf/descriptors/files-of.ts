import type { DescFile } from "@bufbuild/protobuf";

/** Returns the files that declare the descriptors, and their imports, recursively. */
export function filesOf(descriptors: Iterable<{ readonly file: DescFile }>): ReadonlySet<DescFile> {
  const files = new Set([...descriptors].map(({ file }) => file));
  for (const { dependencies } of files) for (const dependency of dependencies) files.add(dependency);
  return files;
}
