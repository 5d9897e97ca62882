import {
  type CheckpointFigures,
  type CitusPoint,
  type Figures,
  type ScaleFigures,
} from "../../protoport/bench/figures.ts";

/** Size of a PostgreSQL page, in bytes. */
const pageBytes = 8_192;

/**
 * The costs that a plan uses. `measure.ts` has measured all costs except a call's cost, which is from the comparison
 * between servers.
 */
export interface Costs extends ScaleFigures {
  /** CPU time that a process uses for one call over REST and over gRPC, without its store. */
  readonly restUs: number;
  readonly grpcUs: number;
}

/** Returns the recorded costs, or `undefined` if some costs are missing. */
export function readCosts({ scale, calls }: Figures): Costs | undefined {
  const [restUs, grpcUs] = ["rest", "grpc"].map(
    (scenario) => calls?.[scenario]?.servers.find(({ name }) => name === "plantstore")?.cpuUs,
  );
  if (scale === undefined || restUs === undefined || grpcUs === undefined) return undefined;
  return { ...scale, restUs, grpcUs };
}

/**
 * Returns the CPU time that PostgreSQL uses for a deletion in a batch with this size. The statement and each deletion
 * have fixed costs, so the cost per deletion is linear in 1 / batch. Costs are interpolated between the measured sizes,
 * and extrapolated beyond the measured sizes.
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
 * Returns the CPU time that all Citus workers use for a deletion in a batch for one worker. The time is PostgreSQL's
 * CPU time, shifted to the measured cost with two shards. Each further shard on the worker with a plant in the batch
 * adds a `DELETE` and an `INSERT`, whose cost was measured with eight shards.
 */
export function workersUsAt(costs: Costs, batch: number, shardsOfWorker: number): number {
  const [one, four] = [citusPoint(costs, workersMeasured), citusPoint(costs, 4 * workersMeasured)];
  const ofOneShard = (size: number): number => serverUsAt(costs, size) + one.workersUs - serverUsAt(costs, one.batch);
  const further = (size: number, shards: number): number => (touchedOf(shards, size) - 1) / size;
  const shardUs = Math.max(0, four.workersUs - ofOneShard(four.batch)) / further(four.batch, 4);
  return ofOneShard(batch) + shardUs * further(batch, shardsOfWorker);
}

/** Returns the coordinator's CPU time for a deletion, linear in 1 / batch, through two measured sizes. */
export function coordinatorUsAt(costs: Costs, batch: number): number {
  const points = costs.citus?.points.filter(({ shards }) => shards === workersMeasured) ?? [];
  const [lower, upper] = points.toSorted((one, other) => one.batch - other.batch);
  if (lower === undefined || upper === undefined) throw new Error("two sizes of batches of Citus must be measured");
  return lineThrough(lower, upper, ({ coordinatorUs }) => coordinatorUs)(batch);
}

/**
 * Returns how many bytes a deletion adds to the write-ahead log from a checkpoint to the next checkpoint. In addition
 * to the deletion, the log has an image for each page that is modified for the first time. The pages are in the plants
 * table and in the record index by plant.
 */
export function walBytesAt(costs: Costs, { deletions, plants, records }: Omit<CheckpointFigures, "walBytes">): number {
  const pages = [plants * costs.plantTableBytes, records * costs.recordIndexBytes].map((bytes) => bytes / pageBytes);
  const images = pages.reduce((sum, count) => sum + touchedOf(Math.max(1, count), deletions), 0);
  return costs.walBytes + (images * pageBytes) / deletions;
}

/** Number of workers in the measured Citus cluster. */
const workersMeasured = 2;

/** Returns the measurement with this number of shards and the largest batches. */
export function citusPoint({ citus }: Pick<Costs, "citus">, shards: number): CitusPoint {
  const points = citus?.points.filter((point) => point.shards === shards) ?? [];
  const [largest] = points.toSorted((one, other) => other.batch - one.batch);
  if (largest === undefined) throw new Error(`no measurement of Citus with ${shards} shards`);
  return largest;
}

/** Returns the expected number of pages that `times` random accesses to `count` pages hit at least once. */
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
