import { readFileSync } from "node:fs";
import { join } from "node:path";

/**
 * Returns whether a peer dependency's installed version is at least `since`. `.ci/lift-packages` runs the tests with
 * the oldest versions.
 */
export function isSince(peer: "@bufbuild/protobuf" | "@connectrpc/connect", since: string): boolean {
  const manifest = join(import.meta.dirname, "../../../node_modules", peer, "package.json");
  const { version }: { version: string } = JSON.parse(readFileSync(manifest, "utf8"));
  return version.localeCompare(since, "en", { numeric: true }) >= 0;
}
