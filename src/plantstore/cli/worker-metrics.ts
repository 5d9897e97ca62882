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
  const byName = new Map<string, MetricFamily>();
  for (const { place, families } of answered) for (const family of families) addTo(byName, family, place);
  return [...byName.values(), workersThat(answered.length)];
}

/** Resolves to the metrics of a worker; none if it ends or is silent. */
function ask(worker: ChildProcess): Promise<readonly MetricFamily[]> {
  if (!worker.connected) return Promise.resolve([]);
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

function addTo(byName: Map<string, MetricFamily>, family: MetricFamily, worker: number): void {
  const before = byName.get(family.name);
  const labelled = withWorker(family, worker);
  byName.set(family.name, before === undefined ? labelled : joined(before, labelled));
}

function withWorker(family: MetricFamily, worker: number): MetricFamily {
  const label = <Point extends { readonly attributes: object }>(point: Point): Point => ({
    ...point,
    attributes: { ...point.attributes, worker },
  });
  if (family.kind === "histogram") return { ...family, points: family.points.map(label) };
  return { ...family, points: family.points.map(label) };
}

/** Joins the series of a metric in two processes; they run the same release, so its kind is the same in both. */
function joined(one: MetricFamily, other: MetricFamily): MetricFamily {
  if (one.kind === "histogram") {
    return other.kind === "histogram" ? { ...one, points: [...one.points, ...other.points] } : one;
  }
  return other.kind === "histogram" ? one : { ...one, points: [...one.points, ...other.points] };
}

function workersThat(answered: number): MetricFamily {
  return {
    name: "plantstore.workers",
    unit: "{process}",
    description: "Processes that answered when their metrics were asked for",
    kind: "gauge",
    points: [{ attributes: {}, value: answered }],
  };
}
