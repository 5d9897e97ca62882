// In milliseconds. The victim of a deadlock is retried almost immediately, and a starting server is not flooded.
const backoffMsFirst = 5;
const backoffMsMax = 1_000;

/**
 * Returns the wait before the next attempt, in milliseconds. Full jitter, so that replicas that failed together do not
 * retry together.
 */
export function backoffMs(attempts: number): number {
  return Math.random() * Math.min(backoffMsMax, backoffMsFirst * 2 ** attempts);
}
