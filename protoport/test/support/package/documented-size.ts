import { readPage } from "../docs/page-blocks.ts";

/** Returns a package's tarball size in bytes, as documented in a table, by default in docs/how-to/packages.md. */
export function documentedSize(
  name: string,
  rows: readonly string[] = readPage("protoport/docs/how-to/packages.md").split("\n"),
): number {
  const row = rows.find((line) => line.startsWith(`| \`${name}\` |`));
  return 1000 * Number(/(\d+) \|$/.exec(row ?? "")?.[1]);
}
