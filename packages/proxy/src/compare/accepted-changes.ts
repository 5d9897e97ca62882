import type { Change } from "./change.ts";

/** Changes, apart from those that a file accepts. */
export interface PartitionedChanges {
  readonly open: readonly Change[];
  readonly accepted: readonly Change[];
  /** The file's lines that accept nothing. */
  readonly unused: readonly string[];
}

/**
 * Returns the changes that a file accepts.
 *
 * @param text - a change per line, as `RULE SUBJECT`. After `#`, a line has a comment
 */
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
