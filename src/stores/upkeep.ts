/** Something that a store has done or met by itself, apart from deletions; `lastedMs` says for how long. */
export type Upkeep =
  /** It has brought the schema of its file from one version to another; 0 is a new file. */
  | { readonly kind: "migrated"; readonly from: number; readonly to: number; readonly lastedMs: number }
  /** It has dropped expired deletion records. */
  | { readonly kind: "records-dropped"; readonly count: number; readonly lastedMs: number }
  /** It could not drop all of them; `problem` says why, for an operator. It tries again at the next interval. */
  | { readonly kind: "retention-failed"; readonly problem: string; readonly lastedMs: number }
  /** One of several servers that store the plants is lost; `problem` says why, for an operator. The others go on. */
  | { readonly kind: "worker-away"; readonly lastedMs: number; readonly problem: string }
  /** That server deletes again. */
  | { readonly kind: "worker-back"; readonly lastedMs: number }
  /** A pooler does not keep prepared statements, so from now on none is prepared; `problem` quotes the server. */
  | { readonly kind: "names-refused"; readonly lastedMs: number; readonly problem: string };

/** Called when upkeep has ended, and for a lost worker once a batch for it was given up. Must not throw. */
export type OnUpkeep = (upkeep: Upkeep) => void;

/** Returns the milliseconds since a time on the clock of `performance.now()`, as a whole number. */
export function lastedSince(begunMs: number): number {
  return Math.round(performance.now() - begunMs);
}

/** The result of dropping expired records once. */
interface DroppedRecords {
  readonly count: number;
  /** Why it could not go on; `undefined` when nothing is left to drop. */
  readonly problem: string | undefined;
  /** When it began, on the clock of `performance.now()`. */
  readonly begunMs: number;
}

/** Reports the records that were dropped, including those before a fault, and the fault. */
export function tellOfDropped(onUpkeep: OnUpkeep | undefined, { count, problem, begunMs }: DroppedRecords): void {
  const lastedMs = lastedSince(begunMs);
  if (count > 0) onUpkeep?.({ kind: "records-dropped", count, lastedMs });
  if (problem !== undefined) onUpkeep?.({ kind: "retention-failed", problem, lastedMs });
}
