/** From one id to the next. A prime: no number of plants but its multiples has a factor in common with it. */
export const scatterStep = 2_654_435_761n;

/** The ids from 1 to `last`, each once, in an order without neighbours; those of its first `skipped` places are left out. */
export function* scattered(last: number, skipped = 0): Generator<bigint, undefined> {
  const count = BigInt(last);
  for (let i = BigInt(skipped) + 1n; i <= count; i++) yield ((i * scatterStep) % count) + 1n;
}
