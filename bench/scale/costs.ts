import { type CheckpointFigures, type CitusPoint, type Figures, type ScaleFigures } from "../figures.ts";

/** The bytes of a page of PostgreSQL. */
const pageBytes = 8_192;

/** What a plan reckons with: what `measure.ts` has measured, and a call by itself, from the comparison of servers. */
export interface Costs extends ScaleFigures {
  /** CPU time of a process for one call, over REST and over gRPC, without its store. */
  readonly restUs: number;
  readonly grpcUs: number;
}

/** Returns what was recorded; `undefined` where something is missing. */
export function readCosts({ scale, calls }: Figures): Costs | undefined {
  const [restUs, grpcUs] = ["rest", "grpc"].map(
    (scenario) => calls?.[scenario]?.servers.find(({ name }) => name === "plantstore")?.cpuUs,
  );
  if (scale === undefined || restUs === undefined || grpcUs === undefined) return undefined;
  return { ...scale, restUs, grpcUs };
}

/**
 * CPU time of PostgreSQL for a deletion in a batch of this size. A statement costs something, and each deletion in it: a
 * straight line over 1 / batch, between every two sizes that were measured, and beyond them as between the next two.
 */
export function serverUsAt({ oneProcess }: Pick<Costs, "oneProcess">, batch: number): number {
  const sorted = oneProcess.toSorted((one, other) => one.batch - other.batch);
  const next = sorted.findIndex((point) => point.batch >= batch);
  const at = next < 0 ? sorted.length - 1 : Math.max(1, next);
  const [lower, upper] = [sorted[at - 1], sorted[at]];
  if (lower === undefined || upper === undefined) throw new Error("at least two sizes of batches must be measured");
  return lineThrough(lower, upper, ({ serverUs }) => serverUs)(batch);
}

/**
 * CPU time of all workers of Citus for a deletion in a batch for one of them: that of PostgreSQL, moved to what two shards
 * cost, and for each further shard of the worker that has a plant of the batch, a `DELETE` and an `INSERT` more, which is
 * known from eight shards.
 */
export function workersUsAt(costs: Costs, batch: number, shardsOfWorker: number): number {
  const [one, four] = [citusPoint(costs, workersMeasured), citusPoint(costs, 4 * workersMeasured)];
  const ofOneShard = (size: number): number => serverUsAt(costs, size) + one.workersUs - serverUsAt(costs, one.batch);
  const further = (size: number, shards: number): number => (touchedOf(shards, size) - 1) / size;
  const shardUs = Math.max(0, four.workersUs - ofOneShard(four.batch)) / further(four.batch, 4);
  return ofOneShard(batch) + shardUs * further(batch, shardsOfWorker);
}

/** CPU time of the coordinator for a deletion: a straight line over 1 / batch through two sizes that were measured. */
export function coordinatorUsAt(costs: Costs, batch: number): number {
  const points = costs.citus?.points.filter(({ shards }) => shards === workersMeasured) ?? [];
  const [lower, upper] = points.toSorted((one, other) => one.batch - other.batch);
  if (lower === undefined || upper === undefined) throw new Error("two sizes of batches of Citus must be measured");
  return lineThrough(lower, upper, ({ coordinatorUs }) => coordinatorUs)(batch);
}

/**
 * Bytes of write-ahead log for a deletion from one checkpoint to the next: its own, and an image of each page that is
 * touched for the first time, in the table of plants and in the index of records by plant.
 */
export function walBytesAt(costs: Costs, { deletions, plants, records }: Omit<CheckpointFigures, "walBytes">): number {
  const pages = [plants * costs.plantTableBytes, records * costs.recordIndexBytes].map((bytes) => bytes / pageBytes);
  const images = pages.reduce((sum, count) => sum + touchedOf(Math.max(1, count), deletions), 0);
  return costs.walBytes + (images * pageBytes) / deletions;
}

/** Workers of the Citus that is measured. */
const workersMeasured = 2;

/** The point of so many shards with the largest batches. */
export function citusPoint({ citus }: Pick<Costs, "citus">, shards: number): CitusPoint {
  const points = citus?.points.filter((point) => point.shards === shards) ?? [];
  const [largest] = points.toSorted((one, other) => other.batch - one.batch);
  if (largest === undefined) throw new Error(`Citus was not measured with ${shards} shards`);
  return largest;
}

/** How many of these are touched at least once by so many that each touch any one of them. */
function touchedOf(count: number, times: number): number {
  return count === 1 ? 1 : -count * Math.expm1(times * Math.log1p(-1 / count));
}

function lineThrough<Point extends { readonly batch: number }>(
  lower: Point,
  upper: Point,
  cost: (point: Point) => number,
): (batch: number) => number {
  const slope = (cost(lower) - cost(upper)) / (1 / lower.batch - 1 / upper.batch);
  return (batch) => cost(upper) + slope * (1 / batch - 1 / upper.batch);
}
