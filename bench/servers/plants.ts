/**
 * The plants that every server of the bench keeps: a set that loses nothing, so that the load can go on for
 * ever, and that misses on every thousandth call. Not one that is put back what it lost: rehashing it would
 * be a tenth of what is measured, and is nobody's work but the bench's.
 */
export interface BenchPlants {
  /** Whether the plant was there. */
  delete(id: bigint): boolean;
}

/** One call in so many finds no plant, so that the path of an error is part of what is measured. */
export const callsPerMiss = 1_000;

/** How many plants there are: enough that the set is a real one, few enough that it stays in the cache. */
const plantCount = 1_000;

/** The token that the load sends and every server checks; as long as one of `plantstore token create`. */
export const benchToken = "bench-0123456789abcdefghijklmnopqrstuvwxyz-ABCD";

/** Fills the plants 1 to 1000. */
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
