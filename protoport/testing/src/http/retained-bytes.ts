import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

setFlagsFromString("--expose-gc");
const collect: (options?: { readonly type: "minor" }) => void = runInNewContext("gc");

/** Returns the bytes that the process retains after garbage collection, on the heap and in external buffers. */
export async function retainedBytes(): Promise<number> {
  collectGarbage();
  // External memory is released one event loop turn later, at the next garbage collection.
  await new Promise(setImmediate);
  scavenge();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

export function collectGarbage(): void {
  collect();
}

/** Runs a garbage collection of the young generation. */
export function scavenge(): void {
  collect({ type: "minor" });
}
