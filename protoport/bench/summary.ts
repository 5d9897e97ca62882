/** The median and the spread of some figures. */
export interface Summary {
  readonly median: number;
  /** The smallest figure. For CPU time, the smallest figure is from the least disturbed round. */
  readonly least: number;
  /** The difference between the largest and the smallest figure, as a share of the median. */
  readonly spread: number;
}

/** Summarises one figure over the items. */
export function summarise<Item>(items: readonly Item[], figure: (item: Item) => number): Summary {
  const sorted = items.map(figure).toSorted((one, other) => one - other);
  const middle = medianOf(sorted);
  const least = sorted[0] ?? Number.NaN;
  return { median: middle, least, spread: ((sorted.at(-1) ?? Number.NaN) - least) / middle };
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
