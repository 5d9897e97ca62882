/** A store event other than a deletion. If it has a duration, `lastedMs` is the duration. */
export type Upkeep =
  /** The file's schema was migrated from one version to another. 0 is a new file. */
  | { readonly kind: "migrated"; readonly from: number; readonly to: number; readonly lastedMs: number }
  | { readonly kind: "records-dropped"; readonly count: number; readonly lastedMs: number }
  /** Not all expired records could be dropped. `problem` is the reason. Retried at the next interval. */
  | { readonly kind: "retention-failed"; readonly problem: string; readonly lastedMs: number }
  /** A second name, such as a hard link, leads to the file. `problem` is what to do, for an operator. */
  | { readonly kind: "second-name-found"; readonly problem: string }
  | { readonly kind: "second-name-gone"; readonly lastedMs: number }
  /** The write-ahead log has not been copied into the file for a minute. `problem` is the reason, for an operator. */
  | { readonly kind: "checkpoints-stalled"; readonly problem: string }
  /** The write-ahead log is copied into the file again. */
  | { readonly kind: "checkpoints-resumed"; readonly lastedMs: number }
  /** A pooler does not keep prepared statements, so no more are prepared. `problem` is the server's error. */
  | { readonly kind: "prepared-statements-refused"; readonly lastedMs: number; readonly problem: string }
  /** A pooler does not accept the store's timeouts, and the role has others. `problem` says what to do. */
  | { readonly kind: "timeouts-refused"; readonly lastedMs: number; readonly problem: string }
  /** Deletions failed because the server allows the store fewer connections than it needs. `problem` is the error. */
  | { readonly kind: "connections-refused"; readonly lastedMs: number; readonly problem: string };

/** Called after each event. Must not throw. */
export type OnUpkeep = (upkeep: Upkeep) => void;

/** Returns the milliseconds since a time on the `performance.now()` clock, as an integer. */
export function elapsedMsSince(begunMs: number): number {
  return Math.round(performance.now() - begunMs);
}

/** The result of dropping expired records once. */
interface DroppedRecords {
  readonly count: number;
  /** Why it stopped, or `undefined` when no expired records remain. */
  readonly problem: string | undefined;
  /** When it began, on the `performance.now()` clock. */
  readonly begunMs: number;
}

/** Reports the records that were dropped, including those before an error, and the error. */
export function reportDropped(onUpkeep: OnUpkeep | undefined, { count, problem, begunMs }: DroppedRecords): void {
  const lastedMs = elapsedMsSince(begunMs);
  if (count > 0) onUpkeep?.({ kind: "records-dropped", count, lastedMs });
  if (problem !== undefined) onUpkeep?.({ kind: "retention-failed", problem, lastedMs });
}
