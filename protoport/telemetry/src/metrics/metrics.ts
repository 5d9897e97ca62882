import type { Instruments, MetricDescription } from "../conventions/index.ts";
import type { HistogramPoint, MetricFamily, NumberPoint } from "./metric-family.ts";
import { CounterSeries, HistogramSeries, SeriesTable } from "./series.ts";

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
