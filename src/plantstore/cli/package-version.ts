import { readFileSync } from "node:fs";

/** Returns the version in the package.json of this package, which is found by its name, in source as in the build. */
export function packageVersion(): string {
  const { version }: { version: string } = JSON.parse(
    readFileSync(new URL(import.meta.resolve("plantstore/package.json")), "utf8"),
  );
  return version;
}
