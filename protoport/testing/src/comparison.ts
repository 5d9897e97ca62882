import { expect } from "vitest";

/** Two observations that differ. Only a comparison creates instances, so that no test case can omit the comparison. */
export class Differs {
  readonly #observed: readonly unknown[];

  constructor(observed: readonly unknown[]) {
    this.#observed = observed;
    expect(this.#observed).toHaveLength(2);
    expect(this.#observed[0]).not.toEqual(this.#observed[1]);
  }
}

/** Compares two values for each option. An option without a comparison does not compile. */
export type EffectsOf<Options> = Readonly<Record<keyof Options, () => Promise<Differs>>>;

/** Fails unless observations of two values differ, and two observations of the first value are equal. */
export async function compareValues<Value>(
  off: Value,
  on: Value,
  observe: (value: Value) => Promise<unknown>,
): Promise<Differs> {
  const first = await observe(off);
  expect(await observe(off)).toEqual(first);
  return new Differs([first, await observe(on)]);
}
