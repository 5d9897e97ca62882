import { join } from "node:path";

/** The file in which tests write down what they enter: a line for each, its id and the blocks. */
export const enteredBlocks: string = join(import.meta.dirname, "entered");

/** The file in which the processes and threads that tests start write down what they enter: child, space, block. */
export const enteredByChildren: string = join(import.meta.dirname, "entered-by-children");

declare global {
  /** Told of each block that is entered, while that is counted. */
  var plantFaultsEntered: ((block: string) => void) | undefined;
}
