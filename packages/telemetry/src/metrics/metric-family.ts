import type { Attributes, MetricDescription } from "../conventions/index.ts";

/** A metric snapshot with its series. Plain data, so that a process can send it to another process. */
export type MetricFamily = MetricDescription &
  (
    | { readonly kind: "counter" | "gauge"; readonly points: readonly NumberPoint[] }
    | { readonly kind: "histogram"; readonly bounds: readonly number[]; readonly points: readonly HistogramPoint[] }
  );

/** One series in a counter or a gauge. */
export interface NumberPoint {
  readonly attributes: Attributes;
  readonly value: number;
}

/** One histogram series. */
export interface HistogramPoint {
  readonly attributes: Attributes;
  /** The value count in each bucket: one per bound, and one above the last bound. */
  readonly counts: readonly number[];
  readonly sum: number;
}
