import { join } from "node:path";

/** The file in which tests record the blocks that they enter: a line for each test, with its id and the blocks. */
export const enteredBlocks: string = join(import.meta.dirname, "entered");

/** The file in which processes and threads that tests start record the blocks that they enter, one a line. */
export const enteredByChildren: string = join(import.meta.dirname, "entered-by-children");

declare global {
  /** Called with each block that is entered, while they are recorded. */
  var reportEnteredBlock: ((block: string) => void) | undefined;
}
