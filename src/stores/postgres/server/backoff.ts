// In milliseconds. The victim of a deadlock is retried almost at once, and a server that is starting is not flooded.
const backoffMsFirst = 5;
const backoffMsMax = 1_000;

/**
 * Returns how long to wait before the next attempt, in milliseconds. Full jitter: replicas that were refused together
 * do not come back together.
 */
export function backoffMs(tries: number): number {
  return Math.random() * Math.min(backoffMsMax, backoffMsFirst * 2 ** tries);
}
