import { appendFileSync } from "node:fs";
import { enteredByChildren } from "./entered-blocks.ts";

// Loaded by the source in a process or thread that a test has started: records the blocks that are entered there.

const seen = new Set<string>();

globalThis.reportEnteredBlock = (block): void => {
  if (seen.has(block)) return;
  seen.add(block);
  try {
    // Written at once, because the process may be killed.
    appendFileSync(enteredByChildren, `${block}\n`);
  } catch {
    // A process that may not write files is not recorded.
  }
};
