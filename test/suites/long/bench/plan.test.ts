import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { readFigures } from "../../../../protoport/bench/figures.ts";
import {
  type Costs,
  coordinatorUsAt,
  readCosts,
  serverUsAt,
  walBytesAt,
  workersUsAt,
} from "../../../../bench/scale/costs.ts";
import { assumed, type Load, type Plan, planFor, usualMachine } from "../../../../bench/scale/plan.ts";
import { checksOf } from "../../../../bench/scale/tables.ts";
import { projectFolder } from "../../../../protoport/testing/src/process/child-program.ts";

const figures = readFigures();

function recordedCosts(): Costs {
  const costs = readCosts(figures);
  if (costs === undefined) throw new Error("docs/figures.json does not contain the costs that the plan uses");
  return costs;
}

const costs = recordedCosts();

/** The highest relative difference between the plan and a measurement. */
const differenceMax = 0.25;

describe("an estimate of the plan", () => {
  test.each(checksOf(costs))("for $name is within 25 % of the measurement", ({ name, measured, planned }) => {
    const message = `${name}: planned ${planned}, measured ${measured}; fix bench/scale/costs.ts or record on a quiet machine`;
    expect(Math.abs(planned / measured - 1), message).toBeLessThan(differenceMax);
  });

  test("is checked at three measured points", () => {
    expect(checksOf(costs)).toHaveLength(3);
  });
});

describe("the plan", () => {
  test.each(costs.oneProcess)(
    "with $batch deletions per batch reproduces PostgreSQL's measured cost",
    ({ batch, serverUs }) => {
      expect(serverUsAt(costs, batch)).toBeCloseTo(serverUs, 6);
    },
  );

  test.each(costs.citus?.points.filter(({ shards }) => shards === 2) ?? [])(
    "with $batch deletions per batch reproduces the coordinator's measured cost",
    ({ batch, coordinatorUs }) => {
      expect(coordinatorUsAt(costs, batch)).toBeCloseTo(coordinatorUs, 6);
    },
  );
});

// Costs for which each expected value can be calculated by hand.
const measured = { date: "2026-11-23", node: "26.10.0", cores: 2 };
const byHand: Costs = {
  measured,
  loadAverage: 2,
  restUs: 14,
  grpcUs: 4,
  storeUs: 6,
  plantTableBytes: 36,
  plantIndexBytes: 24,
  recordBytes: 150,
  recordIndexBytes: 30,
  walBytes: 400,
  afterCheckpoint: { walBytes: 8_000, deletions: 1_000, plants: 1_000_000, records: 1_000_000 },
  replayUs: 5,
  oneProcess: [
    { batch: 1, serverUs: 180 },
    { batch: 5, serverUs: 52 },
    { batch: 100, serverUs: 21.6 },
  ],
  twoProcesses: { batch: 40, serverUs: 24 },
  thousandUs: 10,
  citus: {
    measured,
    points: [
      { shards: 2, batch: 100, workersUs: 21.6, coordinatorUs: 6 },
      { shards: 8, batch: 100, workersUs: 24.6, coordinatorUs: 6 },
      { shards: 32, batch: 100, workersUs: 36, coordinatorUs: 6 },
      { shards: 2, batch: 5, workersUs: 52, coordinatorUs: 44 },
    ],
  },
};

describe("a deletion's cost", () => {
  test.each([
    { name: "is 20 µs plus a share of the batch's 160 µs", us: serverUsAt(byHand, 40), want: 24 },
    { name: "is extrapolated to batches larger than any measured one", us: serverUsAt(byHand, 1_000), want: 20.16 },
    { name: "on a worker with one shard equals the cost on PostgreSQL", us: workersUsAt(byHand, 40, 1), want: 24 },
    {
      name: "includes three more statements on a worker with four shards",
      us: workersUsAt(byHand, 100, 4),
      want: 24.6,
    },
    { name: "includes at most one statement per plant of a batch", us: workersUsAt(byHand, 1, 64), want: 180 },
    {
      name: "on the coordinator is 4 µs plus a share of 200 µs",
      us: coordinatorUsAt(byHand, 50),
      want: 8,
    },
  ])("$name", ({ us, want }) => {
    expect(us).toBeCloseTo(want, 1);
  });

  test("includes one log image for each modified page", () => {
    const many = { plants: 1e10, records: 1e8, deletions: 1_000 };
    expect(walBytesAt(byHand, many)).toBeCloseTo(400 + 2 * 8_192, -2);
    expect(walBytesAt(byHand, { ...many, plants: 1_000, records: 1_000 })).toBeCloseTo(466, 0);
  });
});

describe("a plan", () => {
  const small: Load = { plants: 1e6, deletionsPerS: 1e3, days: 7 };

  test("for a small store has one PostgreSQL, two standbys and two processes", () => {
    const { workers, processes, machines, coordinatorTimes } = planFor(byHand, small);
    expect({ workers, processes, machines, coordinatorTimes }).toStrictEqual({
      workers: 1,
      processes: 2,
      machines: { service: 2, database: 3, coordinator: 0 },
      coordinatorTimes: 0,
    });
  });

  test.each<{ name: string; load: Load; machine?: Partial<typeof usualMachine>; want: Partial<Plan["first"]> }>([
    { name: "the disks", load: { plants: 1e6, deletionsPerS: 1e5, days: 90 }, want: { limit: "disk" } },
    { name: "the memory", load: { plants: 1e6, deletionsPerS: 1e5, days: 7 }, want: { limit: "memory" } },
    {
      name: "the WAL replay",
      load: { plants: 1e6, deletionsPerS: 1e6, days: 1 },
      machine: { memoryGb: 1e5, diskTb: 1e3, networkGbit: 1e3, cores: 128 },
      want: { limit: "replay" },
    },
    {
      name: "the cores",
      load: { plants: 1e6, deletionsPerS: 1e5, days: 1 },
      machine: { memoryGb: 1e5, diskTb: 1e3, networkGbit: 1e3, cores: 2 },
      want: { limit: "cores" },
    },
    {
      name: "the network",
      load: { plants: 1e6, deletionsPerS: 1e5, days: 1 },
      machine: { memoryGb: 1e5, diskTb: 1e3, networkGbit: 0.1 },
      want: { limit: "network" },
    },
  ])("reports $name as the first exceeded limit", ({ load, machine, want }) => {
    const { first } = planFor(byHand, load, { ...usualMachine, ...machine });
    expect(first).toMatchObject(want);
    expect(first.times).toBeGreaterThan(1);
  });

  test("sizes a batch by the deletions that arrive during the previous one", () => {
    const { batch, latencyMs, processes } = planFor(byHand, { plants: 1e6, deletionsPerS: 1e4, days: 1 });
    expect(batch).toBeCloseTo((1e4 * latencyMs) / 1_000 / (2 * processes), 3);
  });

  test("enlarges batches when small ones would overload the coordinator", () => {
    const { batch, latencyMs, cores, coordinatorTimes } = planFor(byHand, { plants: 1e8, deletionsPerS: 1e6, days: 7 });
    expect(cores.coordinator).toBeLessThanOrEqual(16 * 0.7);
    expect(coordinatorUsAt(byHand, batch / 1.02) * 1e6).toBeGreaterThan(16 * 0.7 * 1e6);
    expect(latencyMs).toBeGreaterThan(10);
    expect(coordinatorTimes).toBeLessThanOrEqual(1);
  });

  test("with hundreds of workers reports too many connections to the coordinator", () => {
    expect(planFor(byHand, { plants: 1e8, deletionsPerS: 1e6, days: 90 }).coordinatorTimes).toBeGreaterThan(1);
  });
});

describe("bench/README.md", () => {
  const page = readFileSync(join(projectFolder, "bench/README.md"), "utf8").replaceAll(/\s+/g, " ");

  test.each([
    `machines with ${usualMachine.cores} cores, ${usualMachine.memoryGb} GB, ${usualMachine.diskTb} TB and ${usualMachine.networkGbit} Gbit/s`,
    `${assumed.commitMs} ms commits`,
    `disks with ${assumed.diskPagesPerS.toLocaleString("en-US")} pages a second`,
    `a checkpoint every ${assumed.checkpointMinutes} minutes`,
    `${assumed.shardsOfWorker} shards a worker`,
    `at most ${assumed.busyMax * 100} % in use`,
    `more than ${assumed.connectionsMax.toLocaleString("en-US")} connections to the coordinator`,
  ])('states the assumption "%s"', (words) => {
    expect(page).toContain(words);
  });

  test("documents the command that prints a plan", () => {
    const [, words = ""] = /`npx node (bench\/scale\/plan\.ts [^`]*)`/.exec(page) ?? [];
    const output = execFileSync(process.execPath, words.split(" "), { cwd: projectFolder, encoding: "utf8" });
    expect(output).toContain("workers: ");
  });
});

describe("a plan", () => {
  const steps = [1e5, 1e6, 1e7, 1e8, 1e9, 1e10];
  const rates = [1e2, 1e3, 1e4, 1e5, 2e5, 1e6];
  const kept = [1, 7, 30, 90];

  test.each<{ name: string; series: Load[][] }>([
    {
      name: "for more plants",
      series: rates.flatMap((deletionsPerS) =>
        kept.map((days) => steps.map((plants) => ({ plants, deletionsPerS, days }))),
      ),
    },
    {
      name: "for more deletions",
      series: steps.flatMap((plants) =>
        kept.map((days) => rates.map((deletionsPerS) => ({ plants, deletionsPerS, days }))),
      ),
    },
    {
      name: "for a longer retention",
      series: steps.flatMap((plants) =>
        rates.map((deletionsPerS) => kept.map((days) => ({ plants, deletionsPerS, days }))),
      ),
    },
  ])("$name never requires fewer machines", ({ series }) => {
    for (const loads of series) {
      const machines = loads.map((load) => {
        const { service, database, coordinator } = planFor(costs, load).machines;
        return service + database + coordinator;
      });
      expect(machines, JSON.stringify(loads)).toStrictEqual(machines.toSorted((one, other) => one - other));
    }
  });
});
