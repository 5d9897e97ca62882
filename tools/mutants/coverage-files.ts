import { join } from "node:path";

/**
 * The file in which tests record the blocks that they enter. The file has a line for each test, with the test's id and
 * the blocks.
 */
export const coverageFile: string = join(import.meta.dirname, "coverage");

/** The file in which processes and threads that tests start record the blocks that they enter, one per line. */
export const childCoverageFile: string = join(import.meta.dirname, "coverage-of-children");

declare global {
  /** Called with each block that is entered, while coverage is recorded. */
  var recordEnteredBlock: ((block: string) => void) | undefined;
}
