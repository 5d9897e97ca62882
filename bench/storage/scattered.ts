/** From one id to the next. A prime: no number of plants but its multiples has a factor in common with it. */
export const scatterStep = 2_654_435_761n;

/** The ids from 1 to `last`, each once, in an order without neighbours. */
export function* scattered(last: number): Generator<bigint, undefined> {
  const count = BigInt(last);
  for (let i = 1n; i <= count; i++) yield ((i * scatterStep) % count) + 1n;
}
