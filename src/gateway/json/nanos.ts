/** The nanoseconds of a decimal fraction of at most nine digits: `"5"` is 500,000,000; nothing is 0. */
export function parseFractionNanos(fraction: string | undefined): number {
  return fraction === undefined ? 0 : Number(fraction.padEnd(9, "0"));
}
