/** The attributes of a series or of a span, by the names of OpenTelemetry's semantic conventions. */
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

/** A histogram or counter, whose series are found by their attributes once and then kept. */
export interface Instrument<Series> {
  with(attributes: Attributes): Series;
}

/** What creates instruments: `Metrics` of `@plantstore/telemetry/metrics`, or an adapter to another library. */
export interface Instruments {
  /** @param bounds - the upper bounds of its buckets, ascending; one more bucket has no bound */
  histogram(about: MetricDescription, bounds: readonly number[]): Instrument<{ record(value: number): void }>;
  counter(about: MetricDescription): Instrument<{ add(value: number): void }>;
}

/**
 * The bounds of durations, in seconds: those of the semantic conventions, and three below them, because most calls here
 * take less than their lowest.
 */
export const durationBounds: readonly number[] = [
  0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10,
];
