const dayMs = 24 * 3_600_000;

/** The default: 90 days. */
export const deletionsKeptMsDefault: number = 90 * dayMs;

/**
 * The minimum, an hour: a retry finds its own deletion in the record, and an import finds what was deleted while it
 * ran.
 */
export const deletionsKeptMsMin = 3_600_000;

/** @throws RangeError when deletion records would be kept for less than {@link deletionsKeptMsMin} */
export function checkDeletionsKept(keptMs: number = deletionsKeptMsDefault): void {
  if (keptMs >= deletionsKeptMsMin) return;
  throw new RangeError(`deletion records are kept for an hour at least, not for ${keptMs} ms`);
}

/** How often a store looks for expired records. */
export const retentionIntervalMs: number = 10 * 60_000;
