/**
 * Measures the cost of plants, deletions and their records in PostgreSQL and, if it is built, Citus. The plan in
 * bench/README.md is based on these costs. With `--record`, the program updates this page. A run takes less than five
 * minutes on a quiet machine. Run the program as `npx node bench/scale/measure.ts [--record]`.
 */
import { loadavg } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { writePages } from "../write-figures.ts";
import { runSql, startPostgres, startStandby } from "../../test/support/plants/postgres-server.ts";
import { type BatchFigures, measuredNow, recordFigures, type ScaleFigures } from "../../protoport/bench/figures.ts";
import { cpuUsOf, cpuUsOfServer } from "../storage/cpu.ts";
import { scattered } from "../storage/scattered.ts";
import { createPlants } from "../storage/stores.ts";
import { leastOf, Plants, type Turn } from "./load.ts";
import { measureCitus } from "./measure-citus.ts";

const { values } = parseArgs({ options: { record: { type: "boolean", default: false } } });

const seconds = 2;
const turns = 3;
/**
 * Number of plants, which is enough for all turns, for the counted records and for the statements with a thousand ids.
 */
const plantsMade = 4_600_000;
const plantsOfTurn = 200_000;
/** Minimum number of records whose size is measured. */
const recordsMin = 1_000_000;
const idsOfStatement = 1_000;

const writtenSql = "pg_current_wal_lsn() - '0/0'";
const replayedSql = "pg_last_wal_replay_lsn() - '0/0'";
const countSql = "SELECT count(*) FROM deletions";
const pollIntervalMs = 50;
const settings = ["-c", "shared_buffers=256MB", "-c", "max_wal_size=8GB"];
// The database is on disk, because the disk's speed is part of the result.
await using postgres = await startPostgres(settings, { onDisk: true });
const url = await createPlants(postgres, plantsMade);
const [table, index] = [await numberOf("pg_table_size('plants')"), await numberOf("pg_indexes_size('plants')")];
const plants = new Plants(url, plantsMade, plantsOfTurn);

const oneProcess: BatchFigures[] = [];
let storeUs = Number.NaN;
for (const callers of [1, 16, 256]) {
  const { batch, metered, processUs } = await measureBatches([callers]);
  oneProcess.push({ batch, serverUs: metered[0] ?? Number.NaN });
  storeUs = processUs;
}
const together = await measureBatches([128, 128]);
const walBytes = await measureWithoutImages();
const afterCheckpoint = await measureAfterCheckpoint();
const thousandUs = await measureThousands();
const replayUs = await measureReplay();
const records = await numberOf(countSql);
const partitions = "FROM pg_partition_tree('deletions') WHERE isleaf";
const recordBytes = await numberOf(`SELECT sum(pg_total_relation_size(relid)) ${partitions}`);
const recordIndexBytes = await numberOf(`
  SELECT sum(pg_relation_size(indexrelid)) FROM pg_index JOIN pg_attribute ON attrelid = indrelid
  WHERE indrelid IN (SELECT relid ${partitions}) AND attname = 'plant_id' AND indkey::text = attnum::text`);
const citus = await measureCitus(seconds, turns);
if (citus === undefined)
  console.log('Citus was not measured because it is not built; run "npx node test/suites/citus/build.ts"');
const scale: ScaleFigures = {
  measured: measuredNow(),
  loadAverage: loadavg()[1] ?? Number.NaN,
  plantTableBytes: table / plantsMade,
  plantIndexBytes: index / plantsMade,
  recordBytes: recordBytes / records,
  recordIndexBytes: recordIndexBytes / records,
  walBytes,
  afterCheckpoint,
  replayUs,
  storeUs,
  oneProcess,
  twoProcesses: { batch: together.batch, serverUs: together.metered[0] ?? Number.NaN },
  thousandUs,
  // Without Citus, the recorded Citus figures are kept.
  ...(citus && { citus }),
};
console.log(JSON.stringify(scale, undefined, 1));
if (values.record) {
  recordFigures({ scale });
  writePages();
}

/** Runs a process for each number of callers, and returns the turn with the lowest cost for the server. */
function measureBatches(callers: readonly number[]): Promise<Turn> {
  return leastOf(turns, 0, () => plants.delete(callers, seconds, async () => [await cpuUsOfServer(postgres)]));
}

/** Runs one process, and returns how many plants it deleted, including its warm-up. */
async function countDeletions(): Promise<number> {
  const before = await numberOf(countSql);
  await plants.delete([256], seconds, async () => []);
  return (await numberOf(countSql)) - before;
}

/** Returns how many bytes the write-ahead log grew by, and how many deletions wrote them. */
async function measureLog(): Promise<{ readonly bytes: number; readonly deletions: number }> {
  const before = await numberOf(writtenSql);
  const deletions = await countDeletions();
  return { bytes: (await numberOf(writtenSql)) - before, deletions };
}

async function measureWithoutImages(): Promise<number> {
  await setFullPageWrites("off");
  const { bytes, deletions } = await measureLog();
  await setFullPageWrites("on");
  return bytes / deletions;
}

/** The checkpointer reads the setting before it makes a checkpoint. */
async function setFullPageWrites(to: "on" | "off"): Promise<void> {
  await runSql(url, `ALTER SYSTEM SET full_page_writes = ${to}`);
  await runSql(url, "SELECT pg_reload_conf()");
  await runSql(url, "CHECKPOINT");
}

async function measureAfterCheckpoint(): Promise<ScaleFigures["afterCheckpoint"]> {
  const recordsBefore = await numberOf(countSql);
  await runSql(url, "CHECKPOINT");
  const { bytes, deletions } = await measureLog();
  return { walBytes: bytes / deletions, deletions, plants: plantsMade, records: recordsBefore };
}

/**
 * Deletes plants in SQL, with a record for each plant. The ids are higher than the ids in all turns. The function stops
 * when there are enough records to determine a record's size.
 */
async function measureThousands(): Promise<number> {
  const missing = Math.max(idsOfStatement, recordsMin - (await numberOf(countSql)));
  const ids = [...scattered(plantsMade, plantsMade - missing)];
  const before = await cpuUsOfServer(postgres);
  for (let first = 0; first < ids.length; first += idsOfStatement) {
    const some = ids.slice(first, first + idsOfStatement).join();
    await runSql(
      url,
      `WITH gone AS (DELETE FROM plants WHERE id = ANY('{${some}}') RETURNING id)
       INSERT INTO deletions (plant_id, subject, request_id, batch, by_day)
       SELECT id, 'clean-up', '${"0".repeat(16)}-' || lpad((id % 10000)::text, 4, '0'), gen_random_uuid(), true FROM gone`,
    );
  }
  return ((await cpuUsOfServer(postgres)) - before) / ids.length;
}

/**
 * Returns the CPU time per deletion in the process that replays the log on a standby. The result is the lowest in all
 * turns.
 */
async function measureReplay(): Promise<number> {
  await using standby = await startStandby(postgres, "standby", settings);
  const at = url.replace(postgres.socketFolder, standby.socketFolder);
  const pid = await numberOf("SELECT pid FROM pg_stat_activity WHERE backend_type = 'startup'", at);
  let leastUs = Number.POSITIVE_INFINITY;
  for (let turn = 0; turn < turns; turn++) {
    const before = cpuUsOf(pid);
    const deletions = await countDeletions();
    const end = await numberOf(writtenSql);
    while ((await numberOf(replayedSql, at)) < end) await sleep(pollIntervalMs);
    leastUs = Math.min(leastUs, (cpuUsOf(pid) - before) / deletions);
  }
  return leastUs;
}

/** Evaluates an SQL expression whose result is a number, on the primary or at another URL. */
async function numberOf(sql: string, at: string = url): Promise<number> {
  const [row] = await runSql(at, `SELECT (${sql})::numeric AS number`);
  return Number(row?.["number"]);
}
