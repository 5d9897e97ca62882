/**
 * Measures the cost of a deletion by a lone caller. The program reports CPU time in the process and in PostgreSQL, in
 * turns with the same statement without a store. A caller deletes one plant after another without a pause, and another
 * caller pauses in between. `npx node bench/storage/lone.ts [--seconds 2] [--rounds 5] [--pause 2]`
 */
import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { startPostgres } from "../../test/support/plants/postgres-server.ts";
import { createTempFolder } from "../../protoport/testing/src/process/temp-folder.ts";
import { numberFlags } from "../../protoport/bench/options.ts";
import { median } from "../../protoport/bench/summary.ts";
import { cpuUsOfServer } from "./cpu.ts";
import { createStore, type StoreName } from "./stores.ts";

const { seconds, rounds, pause } = numberFlags({ seconds: 2, rounds: 5, pause: 2 });
const program = fileURLToPath(new URL("store-alone.ts", import.meta.url));
// Number of plants, which is more than one caller can delete.
const plants = 20_000 * seconds;

using folder = createTempFolder();
// The database is on disk, because the disk's speed is part of the result.
await using postgres = await startPostgres(["-c", "shared_buffers=256MB", "-c", "max_wal_size=4GB"], { onDisk: true });
let turnsMade = 0;

console.log("medians; CPU in µs per deletion\n");
console.log("store              pause  process  PostgreSQL");
for (const pauseMs of [0, pause]) {
  const turnsByStore = new Map<StoreName, Turn[]>();
  for (let round = 0; round < rounds; round++) {
    for (const name of ["sqlite single", "sqlite", "postgres single", "postgres"] as const) {
      turnsByStore.set(name, [...(turnsByStore.get(name) ?? []), await measure(name, pauseMs)]);
    }
  }
  for (const [name, turns] of turnsByStore) {
    const columns = [turns.map(({ processUs }) => processUs), turns.map(({ serverUs }) => serverUs)].map(median);
    const cells = [pauseMs, ...columns].map((cell, i) => cell.toFixed(0).padStart([6, 9, 12][i] ?? 0));
    console.log(name.padEnd(18) + cells.join(""));
  }
}

interface Turn {
  readonly processUs: number;
  readonly serverUs: number;
}

async function measure(name: StoreName, pauseMs: number): Promise<Turn> {
  const location = await createStore(name, plants, folder.file(`${++turnsMade}.db`), postgres);
  const beforeUs = await cpuUsOfServer(postgres);
  const words = [program, name, JSON.stringify(location), "1", String(seconds), String(pauseMs)];
  const output = execFileSync(process.execPath, words, { encoding: "utf8" });
  const { deleted, cpuUs }: { readonly deleted: number; readonly cpuUs: number } = JSON.parse(output);
  return { processUs: cpuUs / deleted, serverUs: ((await cpuUsOfServer(postgres)) - beforeUs) / deleted };
}
