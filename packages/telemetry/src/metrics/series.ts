import type { Attributes } from "../conventions/index.ts";
import type { HistogramPoint, NumberPoint } from "./metric-family.ts";

/**
 * The most series of a metric. Ours have few attributes of few values each, so a metric that reaches this has an
 * attribute that clients choose.
 */
const seriesMax = 1_000;

// The attribute with which OpenTelemetry's SDK marks the series of all values beyond its limit.
const overflow: Attributes = { "otel.metric.overflow": true };

/** A series that values are added to. */
interface Series<Point> {
  toPoint(): Point;
}

/** The series of a metric. Code that records keeps its series, because finding one by its attributes is expensive. */
export class SeriesTable<One extends Series<Point>, Point> {
  readonly #byAttributes = new Map<string, One>();
  readonly #open: (attributes: Attributes) => One;

  constructor(open: (attributes: Attributes) => One) {
    this.#open = open;
  }

  /** Returns the series with these attributes; beyond {@link seriesMax} series, the one that all others share. */
  with(attributes: Attributes): One {
    const key = JSON.stringify(attributes);
    const known = this.#byAttributes.get(key);
    if (known !== undefined) return known;
    if (this.#byAttributes.size >= seriesMax && attributes !== overflow) return this.with(overflow);
    const series = this.#open(attributes);
    this.#byAttributes.set(key, series);
    return series;
  }

  /** Returns what each series holds now. */
  points(): Point[] {
    return [...this.#byAttributes.values()].map((series) => series.toPoint());
  }
}

/** A count that only grows. */
export class CounterSeries implements Series<NumberPoint> {
  readonly #attributes: Attributes;
  #value = 0;

  constructor(attributes: Attributes) {
    this.#attributes = attributes;
  }

  add(value: number): void {
    this.#value += value;
  }

  toPoint(): NumberPoint {
    return { attributes: this.#attributes, value: this.#value };
  }
}

/** The number of values in each bucket, and their sum. */
export class HistogramSeries implements Series<HistogramPoint> {
  readonly #attributes: Attributes;
  readonly #bounds: readonly number[];
  readonly #counts: Float64Array;
  #sum = 0;

  constructor(attributes: Attributes, bounds: readonly number[]) {
    this.#attributes = attributes;
    this.#bounds = bounds;
    this.#counts = new Float64Array(bounds.length + 1);
  }

  /** Adds a value to the first bucket whose bound is not below it. */
  record(value: number): void {
    const bounds = this.#bounds;
    let bucket = 0;
    while (bucket < bounds.length && value > (bounds[bucket] ?? 0)) bucket += 1;
    this.#counts[bucket] = (this.#counts[bucket] ?? 0) + 1;
    this.#sum += value;
  }

  toPoint(): HistogramPoint {
    return { attributes: this.#attributes, counts: [...this.#counts], sum: this.#sum };
  }
}
