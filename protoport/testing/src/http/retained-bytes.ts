import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

let collector: ((options?: { readonly type: "minor" }) => void) | undefined;

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
  getCollector()();
}

/** Runs a garbage collection of the young generation. */
export function scavenge(): void {
  getCollector()({ type: "minor" });
}

/** Exposes the garbage collector at its first use, because only a few tests need it. */
function getCollector(): NonNullable<typeof collector> {
  setFlagsFromString("--expose-gc");
  return (collector ??= runInNewContext("gc"));
}
