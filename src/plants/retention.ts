/** A day in milliseconds. */
const dayMs = 24 * 3_600_000;

/** How long deletion records are kept unless told otherwise: 90 days. */
export const deletionsKeptMsDefault: number = 90 * dayMs;

/**
 * The shortest time for which deletion records can be kept: an hour. A retry looks its own deletion up
 * in the record, and an import what was deleted while it ran.
 */
export const deletionsKeptMsMin = 3_600_000;

/** @throws RangeError when deletion records would be kept for less than {@link deletionsKeptMsMin} */
export function checkDeletionsKept(keptMs: number = deletionsKeptMsDefault): void {
  if (keptMs >= deletionsKeptMsMin) return;
  throw new RangeError(`deletion records are kept for an hour at least, not for ${keptMs} ms`);
}

/** How often a store looks for records that are older than it keeps. */
export const retentionIntervalMs: number = 10 * 60_000;
