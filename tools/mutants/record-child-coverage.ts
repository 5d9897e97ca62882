import { appendFileSync } from "node:fs";
import { childCoverageFile } from "./coverage-files.ts";

// Records the blocks that are entered in a process or thread that a test has started. The instrumented source loads
// this module.

const recorded = new Set<string>();

globalThis.recordEnteredBlock = (block): void => {
  if (recorded.has(block)) return;
  recorded.add(block);
  try {
    // The block is written immediately, because the process may be killed.
    appendFileSync(childCoverageFile, `${block}\n`);
  } catch {
    // Blocks in a process that may not write files are not recorded.
  }
};
