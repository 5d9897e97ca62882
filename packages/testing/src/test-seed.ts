/**
 * Where everything random in the tests begins. It is the same in each run, so that the verdict on a change does not
 * depend on luck; `.ci/nightly` sets `TEST_SEED`, a whole number below 2^31, to another one each night.
 */
export const testSeed: number = Number(process.env["TEST_SEED"] ?? 1);

/** Whether the inputs are new ones: then more of them tell more. The same ones say everything the first time. */
export const isNightly: boolean = process.env["TEST_SEED"] !== undefined;

/** How often a property is tried: twenty times as often on new inputs, or for as long as there is time. */
export function numRunsOf(count: number): number {
  return isNightly ? 20 * count : count;
}
