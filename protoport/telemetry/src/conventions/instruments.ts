/** Attributes for a series or a span, named by OpenTelemetry's semantic conventions. */
export type Attributes = Readonly<Record<string, string | number | boolean>>;

/** A metric's name, unit and description. */
export interface MetricDescription {
  /** The name by OpenTelemetry's semantic conventions, such as `rpc.server.call.duration`. */
  readonly name: string;
  /** The UCUM unit, which is `s`, `By`, `1` for a ratio, or an annotation such as `{delete}` for a count. */
  readonly unit: string;
  /** The metric's help text, a sentence without a full stop. */
  readonly description: string;
}

/** A histogram or counter. Callers should keep the series from `with`, because looking up a series is expensive. */
export interface Instrument<Series> {
  with(attributes: Attributes): Series;
}

/** Creates instruments. Implemented by `Metrics` from `@protoport/telemetry/metrics`, or by an adapter. */
export interface Instruments {
  /** @param bounds - the upper bounds of the buckets in ascending order, without the last, unbounded bucket */
  histogram(metric: MetricDescription, bounds: readonly number[]): Instrument<{ record(value: number): void }>;
  counter(metric: MetricDescription): Instrument<{ add(value: number): void }>;
}

/**
 * The histogram bounds for durations, in seconds. The bounds below 5 ms are not in the semantic conventions. Most calls
 * take less than 5 ms.
 */
export const durationBounds: readonly number[] = [
  0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10,
];
