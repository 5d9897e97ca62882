import { constants, type Histogram, monitorEventLoopDelay, performance, PerformanceObserver } from "node:perf_hooks";
import { getHeapSpaceStatistics } from "node:v8";
import { type Metrics, singlePoint } from "./metrics.ts";

/** Length of the window for event loop delays in milliseconds, longer than a garbage collection. */
const delayWindowMs = 10_000;

/** The event loop delay's sampling interval, in milliseconds: node's default, whose cost is negligible. */
const delayResolutionMs = 10;

/**
 * Adds a process's metrics, such as CPU time, memory, garbage collections and event loop delays. The names are from
 * OpenTelemetry's conventions for node and V8. Dispose of the result to stop measuring.
 */
export function measureProcess(metrics: Metrics): Disposable {
  metrics.observedCounter({ name: "process.cpu.time", unit: "s", description: "CPU time of all threads" }, () => {
    const { user, system } = process.cpuUsage();
    return [
      { attributes: { "cpu.mode": "user" }, value: user / 1e6 },
      { attributes: { "cpu.mode": "system" }, value: system / 1e6 },
    ];
  });
  metrics.gauge({ name: "process.memory.usage", unit: "By", description: "Resident memory" }, () =>
    singlePoint(process.memoryUsage.rss()),
  );
  metrics.gauge({ name: "process.uptime", unit: "s", description: "Time since the process started" }, () =>
    singlePoint(process.uptime()),
  );
  const started = performance.eventLoopUtilization();
  metrics.observedCounter(
    { name: "nodejs.eventloop.time", unit: "s", description: "Time the event loop was active or idle" },
    () => {
      const { active, idle } = performance.eventLoopUtilization(started);
      return [
        { attributes: { "nodejs.eventloop.state": "active" }, value: active / 1_000 },
        { attributes: { "nodejs.eventloop.state": "idle" }, value: idle / 1_000 },
      ];
    },
  );
  measureHeap(metrics);
  const parts = new DisposableStack();
  parts.use(measureCollections(metrics));
  parts.use(measureDelay(metrics));
  return parts;
}

function measureHeap(metrics: Metrics): void {
  const gauge = (name: string, description: string, read: (space: HeapSpace) => number): void =>
    metrics.gauge({ name: `v8js.memory.heap.${name}`, unit: "By", description }, () =>
      getHeapSpaceStatistics().map((space) => ({
        attributes: { "v8js.heap.space.name": space.space_name },
        value: read(space),
      })),
    );
  gauge("limit", "Memory allocated for a V8 heap space", (space) => space.space_size);
  gauge("used", "Memory used by objects in a V8 heap space", (space) => space.space_used_size);
}

type HeapSpace = ReturnType<typeof getHeapSpaceStatistics>[number];

/** The histogram bounds for garbage collections, in seconds. The semantic conventions have a higher first bound. */
const collectionBounds: readonly number[] = [0.001, 0.01, 0.1, 1, 10];

/** The `v8js.gc.type` for each garbage collection kind in node. */
const collectionTypes: ReadonlyMap<unknown, string> = new Map([
  [constants.NODE_PERFORMANCE_GC_MAJOR, "major"],
  [constants.NODE_PERFORMANCE_GC_MINOR, "minor"],
  [constants.NODE_PERFORMANCE_GC_INCREMENTAL, "incremental"],
  [constants.NODE_PERFORMANCE_GC_WEAKCB, "weakcb"],
]);

function measureCollections(metrics: Metrics): Disposable {
  const durations = metrics.histogram(
    { name: "v8js.gc.duration", unit: "s", description: "Duration of garbage collections" },
    collectionBounds,
  );
  const observer = new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) {
      const type = collectionTypes.get(Object(Reflect.get(entry, "detail")).kind);
      if (type !== undefined) durations.with({ "v8js.gc.type": type }).record(entry.duration / 1_000);
    }
  });
  observer.observe({ entryTypes: ["gc"] });
  return { [Symbol.dispose]: () => observer.disconnect() };
}

/** The event loop's delays, in seconds. */
type EventLoopDelays = Readonly<Record<"p50" | "p99" | "max", number>>;

/** Returns the event loop's delays. @param histogram - records the nanoseconds between two samples */
export function readDelays(histogram: Pick<Histogram, "percentile" | "max">): EventLoopDelays {
  // Without delay, the time between two samples is the resolution, which is therefore subtracted.
  const delayS = (ns: number): number => Math.max(0, ns / 1e9 - delayResolutionMs / 1_000);
  return { p50: delayS(histogram.percentile(50)), p99: delayS(histogram.percentile(99)), max: delayS(histogram.max) };
}

function measureDelay(metrics: Metrics): Disposable {
  const histogram = monitorEventLoopDelay({ resolution: delayResolutionMs });
  histogram.enable();
  let latest: EventLoopDelays = { p50: 0, p99: 0, max: 0 };
  const update = (): void => {
    latest = readDelays(histogram);
    histogram.reset();
  };
  const timer = setInterval(update, delayWindowMs).unref();
  for (const name of ["p50", "p99", "max"] as const) {
    metrics.gauge(
      {
        name: `nodejs.eventloop.delay.${name}`,
        unit: "s",
        description: `Event loop delay, ${name} over the last ${delayWindowMs / 1_000} seconds`,
      },
      () => singlePoint(latest[name]),
    );
  }
  return {
    [Symbol.dispose]: () => {
      clearInterval(timer);
      histogram.disable();
    },
  };
}
