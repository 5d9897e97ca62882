import type { Attributes, MetricDescription } from "../conventions/index.ts";

/** A metric and its series at one moment. Plain data, so that a process can send it to another. */
export type MetricFamily = MetricDescription &
  (
    | { readonly kind: "counter" | "gauge"; readonly points: readonly NumberPoint[] }
    | { readonly kind: "histogram"; readonly bounds: readonly number[]; readonly points: readonly HistogramPoint[] }
  );

/** One series of a counter or a gauge. */
export interface NumberPoint {
  readonly attributes: Attributes;
  readonly value: number;
}

/** One series of a histogram. */
export interface HistogramPoint {
  readonly attributes: Attributes;
  /** How many values fell into each bucket: up to each of the bounds, then above the last. */
  readonly counts: readonly number[];
  readonly sum: number;
}
