import { readFileSync } from "node:fs";

/**
 * Returns the version in package.json, which is two folders up from here, in source as in the build.
 *
 * It is alone in its file, because the build does not bundle a file that finds others by its own place.
 */
export function packageVersion(): string {
  const { version }: { version: string } = JSON.parse(
    readFileSync(new URL("../../../package.json", import.meta.url), "utf8"),
  );
  return version;
}
