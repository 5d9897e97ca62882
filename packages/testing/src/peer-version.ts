import { readFileSync } from "node:fs";
import { join } from "node:path";

/**
 * Returns whether the tests run on this version of a peer, or on a newer one: `.ci/lift-packages` runs them on the
 * oldest.
 */
export function isSince(peer: "@bufbuild/protobuf" | "@connectrpc/connect", since: string): boolean {
  const manifest = join(import.meta.dirname, "../../../node_modules", peer, "package.json");
  const { version }: { version: string } = JSON.parse(readFileSync(manifest, "utf8"));
  return version.localeCompare(since, "en", { numeric: true }) >= 0;
}
