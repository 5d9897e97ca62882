/** The middle of some figures and how far they lie apart. */
export interface Summary {
  readonly median: number;
  /** The smallest: of CPU time, what the least disturbed round needed. */
  readonly least: number;
  /** The distance of the largest from the smallest, as a share of the median. */
  readonly spread: number;
}

/** Sums up one figure over the rounds. */
export function summarise<Item>(items: readonly Item[], figure: (item: Item) => number): Summary {
  const sorted = items.map(figure).toSorted((one, other) => one - other);
  const middle = medianOf(sorted);
  const least = sorted[0] ?? Number.NaN;
  return { median: middle, least, spread: ((sorted.at(-1) ?? Number.NaN) - least) / middle };
}

/** The middle of some figures, in whatever order they are. */
export function median(figures: readonly number[]): number {
  return medianOf(figures.toSorted((one, other) => one - other));
}

function medianOf(sorted: readonly number[]): number {
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2;
}
