import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

setFlagsFromString("--expose-gc");
const collect: (options?: { readonly type: "minor" }) => void = runInNewContext("gc");

/** What the process holds that is not garbage: its heap, and the memory of buffers outside of it. */
export async function heldBytes(): Promise<number> {
  collectGarbage();
  // The memory of buffers is given back a turn later, at the next collection of any kind.
  await new Promise(setImmediate);
  collect({ type: "minor" });
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

/** Collects all garbage of the heap now. */
export function collectGarbage(): void {
  collect();
}
