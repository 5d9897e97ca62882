import { readFileSync } from "node:fs";

/**
 * Returns the version in package.json, which is two folders up from here, in source as in the build.
 *
 * Alone in its file, because the build keeps a file that looks beside itself apart from those that import it.
 */
export function packageVersion(): string {
  const { version }: { version: string } = JSON.parse(
    readFileSync(new URL("../../package.json", import.meta.url), "utf8"),
  );
  return version;
}
