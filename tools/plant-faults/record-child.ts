import { appendFileSync } from "node:fs";
import { threadId } from "node:worker_threads";
import { enteredByChildren } from "./entered-blocks.ts";

// Loaded by the source in a process or thread that a test has started: records the blocks that are entered there.

const child = `${process.pid}.${threadId}`;
const seen = new Set<string>();

function write(block: string): void {
  try {
    // Written at once, because the process may be killed.
    appendFileSync(enteredByChildren, `${child} ${block}\n`);
  } catch {
    // A process that may not write files is not recorded.
  }
}

write("");
globalThis.plantFaultsEntered = (block): void => {
  if (seen.has(block)) return;
  seen.add(block);
  write(block);
};
