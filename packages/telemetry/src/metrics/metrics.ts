import type { Instruments, MetricDescription } from "../conventions/index.ts";
import type { HistogramPoint, MetricFamily, NumberPoint } from "./metric-family.ts";
import { CounterSeries, HistogramSeries, SeriesTable } from "./series.ts";

/**
 * The metrics of a process: counters and histograms that are fed as things happen, and values read at each export.
 *
 * Names, units and attributes are those of OpenTelemetry; each form of export derives its own from them.
 */
export class Metrics implements Instruments {
  readonly #collectors: (() => MetricFamily)[] = [];

  /** Creates a counter. */
  counter(about: MetricDescription): SeriesTable<CounterSeries, NumberPoint> {
    const table = new SeriesTable<CounterSeries, NumberPoint>((attributes) => new CounterSeries(attributes));
    this.#collectors.push(() => ({ ...about, kind: "counter", points: table.points() }));
    return table;
  }

  /** Creates a histogram. @param bounds - the upper bounds of its buckets, ascending; one more bucket has no bound */
  histogram(about: MetricDescription, bounds: readonly number[]): SeriesTable<HistogramSeries, HistogramPoint> {
    const table = new SeriesTable<HistogramSeries, HistogramPoint>(
      (attributes) => new HistogramSeries(attributes, bounds),
    );
    this.#collectors.push(() => ({ ...about, kind: "histogram", bounds, points: table.points() }));
    return table;
  }

  /** Adds a gauge. @param read - returns its series; called at each export, so it must be cheap and must not throw */
  gauge(about: MetricDescription, read: () => readonly NumberPoint[]): void {
    this.#collectors.push(() => ({ ...about, kind: "gauge", points: read() }));
  }

  /** Adds a counter that something else counts. @param read - as for a gauge */
  observedCounter(about: MetricDescription, read: () => readonly NumberPoint[]): void {
    this.#collectors.push(() => ({ ...about, kind: "counter", points: read() }));
  }

  /** Returns everything as it is now. */
  collect(): MetricFamily[] {
    return this.#collectors.map((collect) => collect());
  }
}

/** Returns the one series of a gauge without attributes. */
export function single(value: number): readonly NumberPoint[] {
  return [{ attributes: {}, value }];
}
