/** Returns the difference between the largest and the smallest figure, as a share of the median. */
export function spreadOf(figures: readonly number[]): number {
  return (Math.max(...figures) - Math.min(...figures)) / median(figures);
}

/** Returns the median of some figures. */
export function median(figures: readonly number[]): number {
  return medianOf(figures.toSorted((one, other) => one - other));
}

function medianOf(sorted: readonly number[]): number {
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2;
}
