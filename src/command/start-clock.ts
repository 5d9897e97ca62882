/** Starts a clock. Returns a function that returns the elapsed time, such as "3.2 s". */
export function startClock(): () => string {
  const startMs = performance.now();
  return () => `${((performance.now() - startMs) / 1_000).toFixed(1)} s`;
}
