/** Returns `node:zlib`. Loads it on first use, because that takes 3 ms and 3 MB. */
export function nodeZlib(): typeof import("node:zlib") {
  return process.getBuiltinModule("node:zlib");
}
