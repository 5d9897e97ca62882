/**
 * The step from an id to the next id. The step is a prime, so that it is coprime with every plant count except its
 * multiples.
 */
export const scatterStep = 2_654_435_761n;

/** Yields each id from 1 to `last` once, in a scattered order. */
export function* scattered(last: number): Generator<bigint, undefined> {
  const count = BigInt(last);
  for (let i = 1n; i <= count; i++) yield ((i * scatterStep) % count) + 1n;
}
