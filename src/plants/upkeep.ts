/** What a store has done or met by itself, beside deletions, and for how long, in milliseconds. */
export type Upkeep =
  /** It has brought the schema of its file from one version to another; 0 is a new file. */
  | { readonly kind: "migrated"; readonly from: number; readonly to: number; readonly lastedMs: number }
  /** It has dropped expired deletion records. */
  | { readonly kind: "records-dropped"; readonly count: number; readonly lastedMs: number }
  /** It could not, or not all of them, for a reason in words for an operator; it tries again at the next interval. */
  | { readonly kind: "retention-failed"; readonly problem: string; readonly lastedMs: number }
  /** One of several servers that have the plants is lost, for a reason in words for an operator; the others go on. */
  | { readonly kind: "worker-away"; readonly lastedMs: number; readonly problem: string }
  /** It deletes again. */
  | { readonly kind: "worker-back"; readonly lastedMs: number };

/** Told of upkeep when it has ended, and of a worker once a batch for it was given up. Must not throw. */
export type OnUpkeep = (upkeep: Upkeep) => void;

/** Returns the milliseconds since a time on the clock of `performance.now()`, as a whole number. */
export function lastedSince(begunMs: number): number {
  return Math.round(performance.now() - begunMs);
}

/** What a store has done to its deletion record in one go. */
interface DroppedRecords {
  readonly count: number;
  /** Why it could not go on; `undefined` when nothing is left to drop. */
  readonly problem: string | undefined;
  /** When it began, on the clock of `performance.now()`. */
  readonly begunMs: number;
}

/** Tells of the records that are gone, also of those before a fault, and of the fault. */
export function tellOfDropped(onUpkeep: OnUpkeep | undefined, { count, problem, begunMs }: DroppedRecords): void {
  const lastedMs = lastedSince(begunMs);
  if (count > 0) onUpkeep?.({ kind: "records-dropped", count, lastedMs });
  if (problem !== undefined) onUpkeep?.({ kind: "retention-failed", problem, lastedMs });
}
