const dayMs = 24 * 3_600_000;

/** How long deletion records are kept by default, in milliseconds: 90 days. */
export const deletionsKeptMsDefault: number = 90 * dayMs;

/**
 * The shortest time to keep deletion records, in milliseconds: an hour, in which a retry finds its own deletion, and an
 * import the plants that were deleted while it ran.
 */
const deletionsKeptMsMin = 3_600_000;

/**
 * Checks how long deletion records are to be kept, in milliseconds.
 *
 * @throws RangeError when that is less than {@link deletionsKeptMsMin}
 */
export function checkDeletionsKept(keptMs: number = deletionsKeptMsDefault): void {
  if (keptMs >= deletionsKeptMsMin) return;
  throw new RangeError(`deletionsKeptMs must be at least ${deletionsKeptMsMin} (an hour), got ${keptMs}`);
}

/** How often a store looks for expired records, in milliseconds. */
export const retentionIntervalMs: number = 10 * 60_000;
