/** How long deletion records are kept by default, in milliseconds: 90 days. */
export const deletionsKeptMsDefault: number = 90 * 24 * 3_600_000;

// Minimum time to keep deletion records, in milliseconds: an hour. A retry must find the first attempt's record, and an
// import must find the records of plants that are deleted during the import.
const deletionsKeptMsMin = 3_600_000;

/** @throws RangeError when the time is less than an hour */
export function checkDeletionsKept(keptMs: number = deletionsKeptMsDefault): void {
  if (keptMs >= deletionsKeptMsMin) return;
  throw new RangeError(`deletionsKeptMs must be at least ${deletionsKeptMsMin} (an hour), got ${keptMs}`);
}

/** How often a store drops expired records, in milliseconds. */
export const retentionIntervalMs: number = 10 * 60_000;
