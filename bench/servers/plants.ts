/**
 * The plants on all bench servers. A deletion removes no plant, so that the load can continue forever. Every thousandth
 * call does not find its plant. Removing plants and adding them again would add a tenth to the measured time.
 */
export interface BenchPlants {
  /** Returns whether the plant existed. */
  delete(id: bigint): boolean;
}

/** One in 1,000 calls does not find a plant, so that errors are part of the measurement. */
export const callsPerMiss = 1_000;

/** Number of plants. The number is realistic, and the set fits into the processor's cache. */
const plantCount = 1_000;

/**
 * The token that the load sends and the servers check. The token is as long as a token from `plantstore token create`.
 */
export const benchToken = "bench-0123456789abcdefghijklmnopqrstuvwxyz-ABCD";

/** Creates a set with the plants 1 to 1000. */
export function createBenchPlants(): BenchPlants {
  const plants = new Set(Array.from({ length: plantCount }, (_, index) => BigInt(index + 1)));
  let calls = 0;
  return {
    delete(id) {
      calls += 1;
      if (calls % callsPerMiss === 0) return false;
      return plants.has(id);
    },
  };
}
