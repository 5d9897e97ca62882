import { readFileSync } from "node:fs";
import { join } from "node:path";

/** Whether a peer dependency has at least version `since`. `.ci/copy-protoport` tests the oldest versions. */
export function isPeerAtLeast(peer: "@bufbuild/protobuf" | "@connectrpc/connect", since: string): boolean {
  const manifest = join(import.meta.dirname, "../../../node_modules", peer, "package.json");
  const { version }: { version: string } = JSON.parse(readFileSync(manifest, "utf8"));
  return version.localeCompare(since, "en", { numeric: true }) >= 0;
}
