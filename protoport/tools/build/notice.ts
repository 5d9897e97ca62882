import { globSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const line = `\n${"-".repeat(72)}\n\n`;

/**
 * Writes a bundle's notices, which are a fixed text and the packages in the bundle with their versions and licences.
 *
 * @param files - the bundle's source files
 */
export function writeNotice(text: string, files: readonly string[], to: string): void {
  const folders = new Set(files.map((file) => /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+/.exec(file)?.[0]));
  const notices = [...folders].filter((folder) => folder !== undefined).map(noticeOf);
  writeFileSync(to, [text, ...notices.toSorted()].join(line));
}

function noticeOf(folder: string): string {
  const { name, version, license }: Readonly<Record<"name" | "version" | "license", string>> = JSON.parse(
    readFileSync(join(folder, "package.json"), "utf8"),
  );
  const texts = globSync("{LICENSE,LICENCE}*", { cwd: folder }).map((file) => readFileSync(join(folder, file), "utf8"));
  return [`${name} ${version}, ${license}\n`, ...texts].join("\n");
}
