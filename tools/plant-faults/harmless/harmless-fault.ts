/** Faults that no test should notice, because they break no promise. */
export interface HarmlessFaults {
  /** The file, with its path from `src/` on; without one, every file. */
  readonly file?: string;
  /** How the line of the fault begins, without its indentation. */
  readonly line: string;
  /** How the line before that one begins, where the file has such a line more than once; without it, all of them. */
  readonly after?: string;
  /** How the fault itself begins, as it is printed; without it, every fault of that line. */
  readonly fault?: string;
  readonly why: string;
}
