/**
 * The seed for everything random in the tests. The seed is equal in each run, so that results do not depend on luck.
 * `.ci/nightly` sets `TEST_SEED` to a different integer below 2^31 each night.
 */
export const testSeed: number = Number(process.env["TEST_SEED"] ?? 1);
/** Whether the inputs are new, so that running more inputs is useful. */
export const isNightly: boolean = process.env["TEST_SEED"] !== undefined;
/** Returns how often a property runs. With new inputs, a property runs twenty times as often, within the time limit. */
export const numRunsOf = (count: number): number => (isNightly ? 20 * count : count);
