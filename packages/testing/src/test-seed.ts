/**
 * The seed for everything random in the tests, which is equal in each run, so that results do not depend on luck.
 * `.ci/nightly` sets `TEST_SEED`, an integer below 2^31, to a different one each night.
 */
export const testSeed: number = Number(process.env["TEST_SEED"] ?? 1);

/** Whether the inputs are new, so that running more of them is useful. */
export const isNightly: boolean = process.env["TEST_SEED"] !== undefined;

/** Returns how often a property runs: twenty times as often with new inputs, within the time limit. */
export function numRunsOf(count: number): number {
  return isNightly ? 20 * count : count;
}
