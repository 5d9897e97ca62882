import { appendFileSync } from "node:fs";
import { childCoverageFile } from "./coverage-files.ts";

// Loaded by the instrumented source in a process or thread that a test has started, and records the blocks entered
// there.

const recorded = new Set<string>();

globalThis.recordEnteredBlock = (block): void => {
  if (recorded.has(block)) return;
  recorded.add(block);
  try {
    // Written immediately, because the process may be killed.
    appendFileSync(childCoverageFile, `${block}\n`);
  } catch {
    // A process that may not write files is not recorded.
  }
};
