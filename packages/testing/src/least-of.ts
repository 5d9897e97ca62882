/** Rounds of a measurement, of which one that shows enough is enough. */
const rounds = 5;

/**
 * Measures until a value is below a bound, five times at most, and returns the least.
 *
 * What is too much by a fault is too much each time. What a busy machine, a collection of garbage or the compiler of V8
 * adds comes now and then.
 */
export async function leastOf(measure: () => Promise<number>, bound: number): Promise<number> {
  let least = Number.POSITIVE_INFINITY;
  for (let round = 0; round < rounds && least >= bound; round++) least = Math.min(least, await measure());
  return least;
}
