/** A store event other than a deletion. `lastedMs` is how long the event lasted, in milliseconds. */
export type Upkeep =
  /** The file's schema was migrated from one version to another. A new file has version 0. */
  | { readonly kind: "migrated"; readonly from: number; readonly to: number; readonly lastedMs: number }
  | { readonly kind: "records-dropped"; readonly count: number; readonly lastedMs: number }
  /** Some expired records could not be dropped. `problem` is the reason. The store retries at the next interval. */
  | { readonly kind: "retention-failed"; readonly problem: string; readonly lastedMs: number }
  /** The file has a second name, such as a hard link. `problem` tells an operator what to do. */
  | { readonly kind: "second-name-found"; readonly problem: string }
  | { readonly kind: "second-name-gone"; readonly lastedMs: number }
  /** The write-ahead log has not been copied into the file for a minute. `problem` gives an operator the reason. */
  | { readonly kind: "checkpoints-stalled"; readonly problem: string }
  | { readonly kind: "checkpoints-resumed"; readonly lastedMs: number }
  /** A pooler does not keep prepared statements. The store prepares no more statements. `problem` is the error. */
  | { readonly kind: "prepared-statements-refused"; readonly lastedMs: number; readonly problem: string }
  /** Deletions failed because the server allows the store fewer connections than it needs. `problem` is the error. */
  | { readonly kind: "connections-refused"; readonly lastedMs: number; readonly problem: string };

/** Called after each event. Must not throw. */
export type OnUpkeep = (upkeep: Upkeep) => void;

/** Returns the milliseconds since a time on the `performance.now()` clock, as an integer. */
export function elapsedMsSince(begunMs: number): number {
  return Math.round(performance.now() - begunMs);
}

/** Reports the number of dropped records, and the problem for which dropping stopped, if any. */
export function reportDropped(onUpkeep: OnUpkeep | undefined, count: number, begunMs: number, problem?: string): void {
  const lastedMs = elapsedMsSince(begunMs);
  if (count > 0) onUpkeep?.({ kind: "records-dropped", count, lastedMs });
  if (problem !== undefined) onUpkeep?.({ kind: "retention-failed", problem, lastedMs });
}
