import { formatRows, percent } from "../../protoport/bench/table.ts";
import { type Costs, citusPoint, serverUsAt, walBytesAt, workersUsAt } from "./costs.ts";
import { type Load, type Plan, planFor } from "./plan.ts";

/** The loads on the page, each with a number of plants and a number of deletions per second. */
const loads = [
  [1e6, 1e3],
  [1e8, 1e5],
  [1e10, 1e3],
  [1e10, 1e5],
  [1e10, 1e6],
] as const;

/** Returns a table with the cost of each plant, deletion and record. */
export function costsTable(costs: Costs): string {
  const curve = costs.oneProcess;
  const rows = [
    ["a plant", `${(costs.plantTableBytes + costs.plantIndexBytes).toFixed(0)} bytes with its index`],
    [
      "a deletion record",
      `${costs.recordBytes.toFixed(0)} bytes with its indexes, ${costs.recordIndexBytes.toFixed(0)} of them in the index by plant`,
    ],
    ["write-ahead log", `${costs.walBytes.toFixed(0)} bytes, plus images of pages`],
    ["replay on a standby", `${us(costs.replayUs)} µs, in a single process`],
    ["service", `REST ${us(costs.restUs)} µs, gRPC ${us(costs.grpcUs)}; plus the store, ${us(costs.storeUs)}`],
    [
      `PostgreSQL, in batches of ${listed(curve.map(({ batch }) => size(batch)))}`,
      `${listed(curve.map(({ serverUs }) => us(serverUs)))} µs`,
    ],
    ["PostgreSQL, an id of a `DELETE` of 1,000 in SQL", `${us(costs.thousandUs)} µs`],
    ...citusRows(costs),
  ];
  return formatRows(["", "of one core, for a deletion"], rows);
}

function citusRows({ citus }: Costs): string[][] {
  if (citus === undefined) return [["Citus", "not measured"]];
  const points = citus.points;
  const shards = [2, 8, 32].map((count) => citusPoint({ citus }, count));
  const [first] = shards;
  const small = points.find((point) => point.shards === first?.shards && point.batch < first.batch);
  return [
    [
      `Citus, both workers, ${listed(shards.map((point) => String(point.shards)))} shards`,
      `${listed(shards.map(({ workersUs }) => us(workersUs)))} µs`,
    ],
    [
      `its coordinator, batches of ${listed([small, first].map((point) => size(point?.batch ?? Number.NaN)))}`,
      `${listed([small, first].map((point) => us(point?.coordinatorUs ?? Number.NaN)))} µs`,
    ],
  ];
}

/**
 * Returns a table with the plan for each load, with records kept for 90 and for 7 days, or `undefined` without Citus
 * results.
 */
export function plansTable(costs: Costs): string | undefined {
  if (costs.citus === undefined) return undefined;
  const rows = loads.map(([plants, deletionsPerS]) => {
    const load = { plants, deletionsPerS };
    return planRow(load, planFor(costs, { ...load, days: 90 }), planFor(costs, { ...load, days: 7 }));
  });
  const head = [
    "plants",
    "deletions/s",
    "TB, 90/7 days",
    "log, MB/s",
    "exhausted first",
    "batch, ms",
    "service",
    "database, 90",
    "7 days",
  ];
  return formatRows(head, rows);
}

function planRow({ plants, deletionsPerS }: Omit<Load, "days">, long: Plan, short: Plan): string[] {
  return [
    power(plants),
    power(deletionsPerS),
    `${rounded(long.diskTb)}/${rounded(short.diskTb)}`,
    rounded(short.walMbPerS),
    [long, short].map(breaksFirst).join(", "),
    `${size(short.batch)}, ${rounded(short.latencyMs)}`,
    String(short.machines.service),
    databaseOf(long),
    databaseOf(short),
  ];
}

function breaksFirst({ first: { limit, times } }: Plan): string {
  return times > 1 ? `${limit} ${rounded(times)}×` : "none";
}

/** Returns the number of database machines, in brackets if the load is too much for the coordinator. */
function databaseOf({ workers, machines, coordinatorTimes }: Plan): string {
  if (workers === 1) return String(machines.database);
  const text = `${machines.coordinator}+${workers.toLocaleString("en-US")}×${machines.database / workers}`;
  return coordinatorTimes > 1 ? `(${text})` : text;
}

/** A measurement that the plan does not use, and the plan's estimate for it. */
export interface Check {
  readonly name: string;
  readonly measured: number;
  readonly planned: number;
}

/** Returns the measurements that check the plan. Without Citus, returns only the first two measurements. */
export function checksOf(costs: Costs): readonly Check[] {
  const { twoProcesses, afterCheckpoint, citus } = costs;
  const all = [
    {
      name: `two processes, batches of ${size(twoProcesses.batch)}, µs`,
      measured: twoProcesses.serverUs,
      planned: serverUsAt(costs, twoProcesses.batch),
    },
    {
      name: `${afterCheckpoint.deletions.toLocaleString("en-US")} deletions after a checkpoint, bytes of log`,
      measured: afterCheckpoint.walBytes,
      planned: walBytesAt(costs, afterCheckpoint),
    },
  ];
  if (citus === undefined) return all;
  const { batch, workersUs } = citusPoint(costs, 32);
  return [
    ...all,
    {
      name: `Citus, 32 shards, µs`,
      measured: workersUs,
      planned: workersUsAt(costs, batch, 16),
    },
  ];
}

/** Returns a table with the checks. */
export function checksTable(costs: Costs): string {
  const rows = checksOf(costs).map(({ name, measured, planned }) => [
    name,
    significant(measured),
    `${significant(planned)} (${signed(planned / measured - 1)})`,
  ]);
  return formatRows(["", "measured", "planned"], rows);
}

function rounded(figure: number): string {
  return figure.toLocaleString("en-US", { maximumSignificantDigits: 2 });
}

function us(figure: number): string {
  return significant(figure);
}

function size(batch: number): string {
  return batch < 10 ? String(Number(batch.toFixed(1))) : batch.toFixed(0);
}

function significant(figure: number): string {
  return figure.toLocaleString("en-US", { maximumSignificantDigits: 3 });
}

function listed(texts: readonly string[]): string {
  return texts.join(", ");
}

function signed(share: number): string {
  return share < 0 ? `−${percent(-share)}` : `+${percent(share)}`;
}

/** Returns a number as a power of ten, such as 10⁸. */
function power(figure: number): string {
  return `10${Math.log10(figure)
    .toFixed(0)
    .replaceAll(/\d/g, (digit) => "⁰¹²³⁴⁵⁶⁷⁸⁹".charAt(Number(digit)))}`;
}
