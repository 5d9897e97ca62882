import type { Attributes, MetricDescription } from "../conventions/index.ts";

/** A metric's snapshot with its series. The snapshot is plain data that can be sent to another process. */
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
  /** The number of values in each bucket. The last bucket has the values above the last bound. */
  readonly counts: readonly number[];
  readonly sum: number;
}
