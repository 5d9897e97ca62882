import type { ChildProcess } from "node:child_process";
import type { MetricFamily } from "../server/index.ts";
import type { WorkerOrder, WorkerReport } from "./worker.ts";

/** Milliseconds that a worker has to answer: far more than its event loop is ever late, less than a scrape may take. */
const answerTimeoutMs = 2_000;

/**
 * Collects the metrics of all workers. Every series gets the place of its worker as the attribute `worker`: sums would
 * fall when a worker is replaced, which a counter must not do, and averages would hide a worker that is stuck. A worker
 * that does not answer in time is left out, as `plantstore.workers` shows.
 */
export async function collectFromWorkers(workers: ReadonlyMap<number, ChildProcess>): Promise<MetricFamily[]> {
  const asked = [...workers].map(async ([place, worker]) => ({ place, families: await ask(worker) }));
  const answered = (await Promise.all(asked)).filter(({ families }) => families.length > 0);
  const numbers = new Map<string, NumberFamily>();
  const histograms = new Map<string, HistogramFamily>();
  for (const { place, families } of answered) {
    for (const family of families) {
      if (family.kind === "histogram") addTo(histograms, family, place);
      else addTo(numbers, family, place);
    }
  }
  return [...numbers.values(), ...histograms.values(), workersThat(answered.length)];
}

type HistogramFamily = Extract<MetricFamily, { kind: "histogram" }>;
type NumberFamily = Exclude<MetricFamily, HistogramFamily>;

/** Resolves to the metrics of a worker; none if it ends or is silent. */
function ask(worker: ChildProcess): Promise<readonly MetricFamily[]> {
  const { promise, resolve } = Promise.withResolvers<readonly MetricFamily[]>();
  const onReport = ({ metrics }: WorkerReport): void => {
    if (metrics !== undefined) resolve(metrics);
  };
  const giveUp = (): void => resolve([]);
  const timer = setTimeout(giveUp, answerTimeoutMs);
  worker.on("message", onReport).once("exit", giveUp);
  worker.send("report-metrics" satisfies WorkerOrder, (fault) => fault && giveUp());
  return promise.finally(() => {
    clearTimeout(timer);
    worker.off("message", onReport).off("exit", giveUp);
  });
}

/** Adds the series of a worker to those of the same metric in other workers. */
function addTo<Family extends { readonly name: string; readonly points: readonly { readonly attributes: object }[] }>(
  byName: Map<string, Family>,
  family: Family,
  worker: number,
): void {
  const points = family.points.map((point) => ({ ...point, attributes: { ...point.attributes, worker } }));
  byName.set(family.name, { ...family, points: [...(byName.get(family.name)?.points ?? []), ...points] });
}

function workersThat(answered: number): MetricFamily {
  return {
    name: "plantstore.workers",
    unit: "{process}",
    description: "Worker processes that returned their metrics in time",
    kind: "gauge",
    points: [{ attributes: {}, value: answered }],
  };
}
