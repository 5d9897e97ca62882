/** The attributes of a series, by the names of OpenTelemetry's semantic conventions. */
export type Attributes = Readonly<Record<string, string | number | boolean>>;

/** The name, the unit and the meaning of a metric. */
export interface MetricDescription {
  /** The name by OpenTelemetry's semantic conventions, such as `rpc.server.call.duration`. */
  readonly name: string;
  /** The unit by UCUM: `s`, `By`, `1` for a ratio, `{delete}` for a count of something. */
  readonly unit: string;
  /** What it says, in one sentence without a full stop. */
  readonly description: string;
}

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
