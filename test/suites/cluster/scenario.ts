import { cpSync, writeFileSync } from "node:fs";
import { basename } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { Dice } from "../../../protoport/testing/src/dice.ts";
import { testSeed } from "../../../protoport/testing/src/test-seed.ts";
import { openPlantDatabase, type PlantDatabase } from "../../../src/stores/index.ts";
import { Callers } from "./callers.ts";
import { checkHistory, readTables } from "./check-history.ts";
import { Cluster } from "./cluster.ts";
import { type Fault, faults } from "./faults.ts";
import { databaseUrl } from "./node.ts";
import { PlantSupply } from "./plants.ts";

// Started by run.ts in separate namespaces.

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    seconds: { type: "string", default: "60" },
    seed: { type: "string", default: String(testSeed) },
    fault: { type: "string", default: "" },
    logs: { type: "string" },
    workers: { type: "string", default: "0" },
  },
});

/** Maximum number of broken guarantees to print. */
const maxShown = 20;

const [folder = ""] = positionals;
const { logs } = values;
if (logs !== undefined) process.on("exit", () => cpSync(folder, logs, { recursive: true, filter: isFolderOrLog }));
if (Number(values.workers) > 2) throw new RangeError(`--workers must be between 0 and 2, got ${values.workers}`);
const cluster = await Cluster.start(folder, Number(values.workers));
const callers = new Callers(cluster.nodes, new Dice(Number(values.seed)));
const supply = new PlantSupply(callers, storePlants);
supply.start();
callers.start();
await callers.untilAllDelete();
const untilMs = performance.now() + Number(values.seconds) * 1_000;
const chosen = faults.filter(({ name }) => name.includes(values.fault));
for (let i = 0; performance.now() < untilMs; i++) {
  const fault = chosen[i % chosen.length];
  if (fault !== undefined) await measure(fault);
}
await callers.stop();
await supply.stop();
// Acknowledged deletions must be on the standby that is promoted.
await cluster.switchOver();
await cluster.untilWhole();
await report();
process.exit();

/** Injects a fault, and prints how long each replica deleted nothing. */
async function measure(fault: Fault): Promise<void> {
  const sinceMs = performance.now();
  const trouble = await fault.inject(cluster);
  await sleep(fault.seconds * 1_000);
  await trouble.heal();
  await cluster.untilWhole();
  await callers.untilAllDelete();
  const pauses = cluster.nodes.map((node) => {
    const pauseS = (callers.longestPauseMs(node, sinceMs) / 1_000).toFixed(1);
    return `${node.machine.name}${node === trouble.at ? " on that machine" : ""} ${pauseS} s`;
  });
  process.stdout.write(`${fault.name}: longest time without a deletion by ${pauses.join(", ")}\n`);
}

function isFolderOrLog(path: string): boolean {
  return path.endsWith(".log") || path === folder || /^node-\d$/.test(basename(path));
}

async function storePlants(ids: readonly bigint[]): Promise<void> {
  const { machine } = await cluster.primary();
  const url = databaseUrl(machine.clusterAddress);
  const database: PlantDatabase = await openPlantDatabase({ kind: "postgres", url });
  await using plantImport = await database.startImport();
  await plantImport.add(ids);
}

async function report(): Promise<void> {
  const { created, perhapsCreated } = supply;
  const { calls } = callers;
  const verdict = checkHistory({ created, perhapsCreated, calls }, await readTables((sql) => cluster.query(sql)));
  const broken = Object.values(verdict).flat();
  for (const sentence of broken.slice(0, maxShown)) process.stderr.write(`${sentence}\n`);
  const counts = (["deleted", "not found", "refused", "unknown"] as const).map(
    (outcome) => `${calls.filter((call) => call.outcome === outcome).length} ${outcome}`,
  );
  const { lost, doubled, wrong } = verdict;
  process.stdout.write(`${calls.length} calls on ${created.size} plants: ${counts.join(", ")}\n`);
  process.stdout.write(`${lost.length} lost, ${doubled.length} doubled, ${wrong.length} wrong responses\n`);
  const file = process.env["TEST_REPORT"];
  const failed = broken.length === 0 ? 0 : 1;
  if (file !== undefined) writeFileSync(file, JSON.stringify({ numPassedTests: 1 - failed, numFailedTests: failed }));
  process.exitCode = failed;
}
