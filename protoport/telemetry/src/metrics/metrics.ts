import type { Attributes, Instruments, MetricDescription } from "../conventions/index.ts";

/**
 * A process's metrics. Code records values to counters and histograms, and each export reads the gauges. Names, units
 * and attributes are from OpenTelemetry. Each export format derives its own names.
 */
export class Metrics implements Instruments {
  readonly #collectors: (() => MetricFamily)[] = [];

  counter(metric: MetricDescription): SeriesTable<CounterSeries, NumberPoint> {
    const table = new SeriesTable<CounterSeries, NumberPoint>((attributes) => new CounterSeries(attributes));
    this.#collectors.push(() => ({ ...metric, kind: "counter", points: table.points() }));
    return table;
  }

  /** Creates a histogram. @param bounds - the buckets' upper bounds in ascending order, without the unbounded bucket */
  histogram(metric: MetricDescription, bounds: readonly number[]): SeriesTable<HistogramSeries, HistogramPoint> {
    const table = new SeriesTable<HistogramSeries, HistogramPoint>(
      (attributes) => new HistogramSeries(attributes, bounds),
    );
    this.#collectors.push(() => ({ ...metric, kind: "histogram", bounds, points: table.points() }));
    return table;
  }

  /** Adds a gauge. @param read - returns the gauge's series at each export. Must be fast, and must not throw */
  gauge(metric: MetricDescription, read: () => readonly NumberPoint[]): void {
    this.#collectors.push(() => ({ ...metric, kind: "gauge", points: read() }));
  }

  /** Adds a counter that is counted elsewhere. @param read - returns the counter's series, as in {@link gauge} */
  observedCounter(metric: MetricDescription, read: () => readonly NumberPoint[]): void {
    this.#collectors.push(() => ({ ...metric, kind: "counter", points: read() }));
  }

  collect(): MetricFamily[] {
    return this.#collectors.map((collect) => collect());
  }
}

/** Returns an array with one point that has no attributes. */
export function singlePoint(value: number): readonly NumberPoint[] {
  return [{ attributes: {}, value }];
}

/** Maximum number of series per metric. The limit is reached only if clients can choose an attribute. */
const maxSeries = 1_000;

// OpenTelemetry's SDK uses this attribute for the series that collects all values above the limit.
const overflow: Attributes = { "otel.metric.overflow": true };

interface Series<Point> {
  toPoint(): Point;
}

/** The series of a metric. Callers keep the series that they record to, because the lookup is expensive. */
export class SeriesTable<One extends Series<Point>, Point> {
  readonly #seriesByAttributes = new Map<string, One>();
  readonly #create: (attributes: Attributes) => One;

  constructor(create: (attributes: Attributes) => One) {
    this.#create = create;
  }

  /** Returns the series for the attributes. Above {@link maxSeries}, new attributes share one overflow series. */
  with(attributes: Attributes): One {
    const key = JSON.stringify(attributes);
    const existing = this.#seriesByAttributes.get(key);
    if (existing !== undefined) return existing;
    if (this.#seriesByAttributes.size >= maxSeries && attributes !== overflow) return this.with(overflow);
    const series = this.#create(attributes);
    this.#seriesByAttributes.set(key, series);
    return series;
  }

  points(): Point[] {
    return [...this.#seriesByAttributes.values()].map((series) => series.toPoint());
  }
}

/** A monotonic counter. */
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

/** A histogram with the number of values in each bucket, and the sum of the values. */
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

  /** Adds a value to the first bucket whose bound is at least the value. */
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
