import { appendFileSync } from "node:fs";
import { threadId } from "node:worker_threads";
import { enteredByChildren } from "./entered-blocks.ts";

// Loaded by the source in a process or thread that a test has started: writes down which blocks are entered there.

const child = `${process.pid}.${threadId}`;
const seen = new Set<string>();

function write(block: string): void {
  try {
    // At once: whoever is killed has no later.
    appendFileSync(enteredByChildren, `${child} ${block}\n`);
  } catch {
    // A child that may write no file is seen by nobody.
  }
}

write("");
globalThis.plantFaultsEntered = (block): void => {
  if (seen.has(block)) return;
  seen.add(block);
  write(block);
};
