/** Returns `node:zlib`, which is loaded when it is first needed: node takes 3 ms and 3 MB for it. */
export function nodeZlib(): typeof import("node:zlib") {
  return process.getBuiltinModule("node:zlib");
}
