// In milliseconds. Short at first, so that the victim of a deadlock is retried almost immediately; longer later, so
// that a starting server is not flooded.
const backoffMsFirst = 5;
const backoffMsMax = 1_000;

/**
 * Returns the wait before the next attempt, in milliseconds. Uses full jitter, so that replicas that failed at the same
 * time do not retry at the same time.
 */
export function backoffMs(attempts: number): number {
  return Math.random() * Math.min(backoffMsMax, backoffMsFirst * 2 ** attempts);
}
