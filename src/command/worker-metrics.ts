import type { ChildProcess } from "node:child_process";
import type { MetricFamily, ServerProblems } from "../server/index.ts";
import type { WorkerOrder, WorkerReport } from "./worker.ts";

/** Timeout for a worker's response, in milliseconds. Longer than event loop delays, shorter than scrape timeouts. */
const responseTimeoutMs = 2_000;

/**
 * Collects the metrics of all workers. Every series has the worker's slot as the attribute `worker`. Values are not
 * summed, because a counter's sum would decrease when a worker is replaced. An average would hide a stuck worker. A
 * worker that does not respond in time is omitted. `plantstore.workers` is the number of workers that responded.
 */
export async function collectFromWorkers(workers: ReadonlyMap<number, ChildProcess>): Promise<MetricFamily[]> {
  const requests = [...workers].map(async ([slot, worker]) => {
    const { metrics: families = [] } = await requestReport(worker);
    return { slot, families };
  });
  const responses = (await Promise.all(requests)).filter(({ families }) => families.length > 0);
  const numbers = new Map<string, NumberFamily>();
  const histograms = new Map<string, HistogramFamily>();
  for (const { slot, families } of responses) {
    for (const family of families) {
      if (family.kind === "histogram") addTo(histograms, family, slot);
      else addTo(numbers, family, slot);
    }
  }
  return [...numbers.values(), ...histograms.values(), workerCount(responses.length)];
}

type HistogramFamily = Extract<MetricFamily, { kind: "histogram" }>;
type NumberFamily = Exclude<MetricFamily, HistogramFamily>;

/** Collects the problems of all workers. The name of each problem contains the worker's slot. */
export async function findProblemsOfWorkers(workers: ReadonlyMap<number, ChildProcess>): Promise<ServerProblems> {
  const requests = [...workers].map(async ([slot, worker]) => {
    const { problems = { process: "it does not respond" } } = await requestReport(worker);
    return Object.entries(problems).map(([part, problem]) => [`${part} of worker ${slot}`, problem] as const);
  });
  return Object.fromEntries((await Promise.all(requests)).flat());
}

/** Resolves to a worker's report. The report is empty if the worker exits or does not respond in time. */
function requestReport(worker: ChildProcess): Promise<WorkerReport> {
  const { promise, resolve } = Promise.withResolvers<WorkerReport>();
  const onReport = (report: WorkerReport): void => {
    if (report.metrics !== undefined) resolve(report);
  };
  const cancel = (): void => resolve({});
  const timer = setTimeout(cancel, responseTimeoutMs);
  worker.on("message", onReport).once("exit", cancel);
  worker.send("report" satisfies WorkerOrder, (error) => error && cancel());
  return promise.finally(() => {
    clearTimeout(timer);
    worker.off("message", onReport).off("exit", cancel);
  });
}

/** Adds a worker's series for a metric to the other workers' series. */
function addTo<Family extends { readonly name: string; readonly points: readonly { readonly attributes: object }[] }>(
  byName: Map<string, Family>,
  family: Family,
  worker: number,
): void {
  const points = family.points.map((point) => ({ ...point, attributes: { ...point.attributes, worker } }));
  byName.set(family.name, { ...family, points: [...(byName.get(family.name)?.points ?? []), ...points] });
}

function workerCount(value: number): MetricFamily {
  return {
    name: "plantstore.workers",
    unit: "{process}",
    description: "Worker processes that returned their metrics in time",
    kind: "gauge",
    points: [{ attributes: {}, value }],
  };
}
