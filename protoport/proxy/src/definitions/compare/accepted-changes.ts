import type { Change } from "./change.ts";

/** Changes, separated into open and accepted changes. */
export interface PartitionedChanges {
  readonly open: readonly Change[];
  readonly accepted: readonly Change[];
  /** The lines in the file that accept no change. */
  readonly unused: readonly string[];
}

/** Separates the changes that a file accepts. `text` has one change per line, `RULE SUBJECT`, and `#` comments. */
export function partitionAccepted(changes: readonly Change[], text: string): PartitionedChanges {
  const lines = text.split("\n").map((line) => line.replace(/(^|\s)#.*$/, "").trim());
  const names = new Set(lines.filter((line) => line !== ""));
  const found = new Set(changes.map(nameOfChange));
  return {
    open: changes.filter((change) => !names.has(nameOfChange(change))),
    accepted: changes.filter((change) => names.has(nameOfChange(change))),
    unused: [...names].filter((name) => !found.has(name)),
  };
}

/** Returns the line that accepts a change. */
export function nameOfChange({ rule, subject }: Change): string {
  return `${rule} ${subject}`;
}
