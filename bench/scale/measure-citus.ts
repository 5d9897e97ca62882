import { migratePlants } from "../../src/stores/index.ts";
import { citusBuild } from "../../test/suites/citus/build.ts";
import { startCitus } from "../../test/suites/citus/citus-cluster.ts";
import { runSql } from "../../test/support/plants/postgres-server.ts";
import { type CitusFigures, type CitusPoint, measuredNow } from "../../protoport/bench/figures.ts";
import { cpuUsOfCitus } from "../storage/cpu.ts";
import { leastOf, Plants } from "./load.ts";

/** The numbers of shards, and of callers in the process. The last measurement has small batches. */
const loads = [
  { shards: 2, callers: 256 },
  { shards: 8, callers: 256 },
  { shards: 32, callers: 256 },
  { shards: 2, callers: 16 },
] as const;

const plantsOfTurn = 200_000;

/** Measures a deletion's cost for a coordinator and two workers on this machine. Returns `undefined` without Citus. */
export async function measureCitus(seconds: number, turns: number): Promise<CitusFigures | undefined> {
  if (citusBuild() === undefined) return undefined;
  await using cluster = await startCitus();
  const count = plantsOfTurn * turns;
  const points: CitusPoint[] = [];
  for (const { shards, callers } of loads) {
    const url = await cluster.createSchema(shards);
    await migratePlants({ kind: "postgres", url });
    await runSql(url, `INSERT INTO plants SELECT unnest(ARRAY(SELECT generate_series(1, ${count})::bigint))`);
    await runSql(url, "ANALYZE plants");
    const plants = new Plants(url, count, plantsOfTurn);
    const { batch, metered } = await leastOf(turns, 1, () =>
      plants.delete([callers], seconds, () => cpuUsOfCitus(cluster)),
    );
    const [coordinatorUs = Number.NaN, workersUs = Number.NaN] = metered;
    points.push({ shards, batch, workersUs, coordinatorUs });
  }
  return { measured: measuredNow(), points };
}
