import { readPage } from "../docs/page-blocks.ts";

/** Returns a package's tarball size in bytes, as documented in protoport/docs/how-to/packages.md. */
export function documentedSize(name: string): number {
  const row = readPage("protoport/docs/how-to/packages.md")
    .split("\n")
    .find((line) => line.startsWith(`| \`${name}\` |`));
  return 1000 * Number(/(\d+) \|$/.exec(row ?? "")?.[1]);
}
