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
  const numbers = new Map<string, NumberFamily>();
  const histograms = new Map<string, HistogramFamily>();
  let responses = 0;
  for (const [slot, report] of await requestReports(workers)) {
    responses += report === undefined ? 0 : 1;
    for (const family of report?.metrics ?? []) {
      if (family.kind === "histogram") addTo(histograms, family, slot);
      else addTo(numbers, family, slot);
    }
  }
  const description = "Worker processes that returned their metrics in time";
  const points = [{ attributes: {}, value: responses }];
  const count = { name: "plantstore.workers", unit: "{process}", description, kind: "gauge", points } as const;
  return [...numbers.values(), ...histograms.values(), count];
}

type HistogramFamily = Extract<MetricFamily, { kind: "histogram" }>;
type NumberFamily = Exclude<MetricFamily, HistogramFamily>;

/** Collects the problems of all workers. The name of each problem contains the worker's slot. */
export async function findProblemsOfWorkers(workers: ReadonlyMap<number, ChildProcess>): Promise<ServerProblems> {
  const found = (await requestReports(workers)).flatMap(([slot, report]) =>
    Object.entries(report?.problems ?? { process: "it does not respond" }).map(
      ([part, problem]) => [`${part} of worker ${slot}`, problem] as const,
    ),
  );
  return Object.fromEntries(found);
}

/** Requests the workers' reports. A report is undefined if the worker exits or does not respond in time. */
function requestReports(workers: ReadonlyMap<number, ChildProcess>): Promise<[number, WorkerReport | undefined][]> {
  return Promise.all([...workers].map(async ([slot, worker]) => [slot, await requestReport(worker)]));
}

function requestReport(worker: ChildProcess): Promise<WorkerReport | undefined> {
  const { promise, resolve } = Promise.withResolvers<WorkerReport | undefined>();
  const cancel = (): void => resolve(undefined);
  const timer = setTimeout(cancel, responseTimeoutMs);
  worker.once("message", resolve).once("exit", cancel);
  worker.send("report" satisfies WorkerOrder, (error) => error && cancel());
  return promise.finally(() => {
    clearTimeout(timer);
    worker.off("message", resolve).off("exit", cancel);
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
