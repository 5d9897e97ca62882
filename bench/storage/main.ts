/**
 * Measures durable deletions of random plants end to end, on each store. The results are compared with the same server
 * with one transaction per request, the same server in memory, and the store without a server. `npx node
 * bench/storage/main.ts [--plants 1000000] [--seconds 5] [--only sqlite,postgres]`
 */
import { parseArgs } from "node:util";
import { readSqlite } from "../../test/support/plants/sqlite-file.ts";
import { createTempFolder } from "../../protoport/testing/src/process/temp-folder.ts";
import { runSql, startPostgres } from "../../test/support/plants/postgres-server.ts";
import { measureByTurns, type TurnResults } from "./by-turns.ts";
import { createStore, isStoreName, type StoreLocation, type StoreName, stores } from "./stores.ts";
import { measureAlone, measureGrpc, type Measurement, measureRest } from "./subject.ts";

// The numbers of connections: one caller, and enough callers to fill a queue.
const connections = [1, 32, 256];

// The numbers of rounds and plants for measurements in turns, regardless of the options. The rounds are enough for a
// meaningful median. The fastest store deletes half of the plants in this time.
const rounds = 15;
const plantsOfRounds = 2_000_000;

const { values } = parseArgs({
  options: {
    plants: { type: "string", default: "1000000" },
    seconds: { type: "string", default: "5" },
    only: { type: "string" },
  },
});

const plants = Number(values.plants);
const seconds = Number(values.seconds);
let storesMade = 0;
const only = values.only?.split(",");
const names = Object.keys(stores)
  .filter(isStoreName)
  .filter((name) => only?.includes(name) ?? true);

using folder = createTempFolder();
// The database is on disk, because the disk's speed is part of the result.
await using postgres = await startPostgres(["-c", "shared_buffers=256MB", "-c", "max_wal_size=4GB"], { onDisk: true });

console.log(`DELETE /plants/<random> over HTTP/1.1, ${plants} plants; µs per request\n`);
console.log("store             conns  requests/s  missed       p50       p99  ping p99  main CPU  all CPU");
for (const name of names) {
  const rows = await measureRest(name, await prepare(name, plants), connections, seconds);
  for (const measured of rows) console.log(rowOf(name, measured));
}

const durable = names.filter((name) => name !== "memory" && !name.endsWith("single"));
if (durable.length > 0) {
  console.log(
    `\nin turns with memory, ${rounds} rounds of a second, 256 connections, each plant once; µs per request\n`,
  );
  console.log("store           requests/s  main CPU  above memory");
  for (const { name, requestsPerS, mainUs, mainUsAbove } of await byTurns(["memory", ...durable], 256)) {
    console.log(tableRow(name, [Math.round(requestsPerS), 10], [mainUs.toFixed(1), 10], [mainUsAbove.toFixed(1), 14]));
  }
}

const oneByOne = { sqlite: "sqlite single", postgres: "postgres single" } as const;
for (const name of ["sqlite", "postgres"] as const) {
  if (!names.includes(name)) continue;
  console.log(`\nin turns with one statement per request, ${rounds} rounds of a second, one caller; p50 in µs\n`);
  for (const result of await byTurns([oneByOne[name], name], 1)) {
    console.log(tableRow(result.name, [result.p50Us.toFixed(0), 6], [`${result.p50Times.toFixed(2)} x`, 10]));
  }
  console.log(`\nin turns with one statement per request, ${rounds} rounds of a second, 256 connections; requests/s\n`);
  for (const result of await byTurns([oneByOne[name], name], 256)) {
    console.log(
      tableRow(result.name, [result.requestsPerS.toFixed(0), 6], [`${result.requestsTimes.toFixed(2)} x`, 10]),
    );
  }
}

console.log(`\ngRPC, 256 concurrent calls, each plant once; the store alone has the same load without a server\n`);
console.log("store           requests/s       p50       p99  store alone  share");
for (const name of names.filter((grouped) => !grouped.endsWith("single"))) {
  const location = await prepare(name, plants);
  const grpc = await measureGrpc(name, location, seconds);
  const deleted = plants - (await countPlants(name, location));
  if (name !== "memory" && deleted !== grpc.requests)
    throw new Error(`${grpc.requests} responses, but ${deleted} deleted plants`);
  const { perS: alone } = await measureAlone(name, await prepare(name, plants), seconds);
  const perS = grpc.requests / grpc.durationS;
  const { p50, p99 } = grpc.latencyUs;
  const share = `${((perS / alone) * 100).toFixed(0)} %`;
  console.log(
    tableRow(
      name,
      [Math.round(perS), 10],
      [Math.round(p50), 10],
      [Math.round(p99), 10],
      [Math.round(alone), 13],
      [share, 7],
    ),
  );
}

async function byTurns(compared: readonly StoreName[], callers: number): Promise<readonly TurnResults[]> {
  const locations = await Promise.all(
    compared.map(async (name) => ({ name, location: await prepare(name, plantsOfRounds) })),
  );
  return await measureByTurns(locations, callers, rounds);
}

/** Creates a store with this name and `count` plants. */
function prepare(name: StoreName, count: number): Promise<StoreLocation> {
  return createStore(name, count, folder.file(`${++storesMade}.db`), postgres);
}

/** Returns the number of remaining plants, or 0 for `memory`, whose plants existed only in its process. */
async function countPlants(name: StoreName, { file, url }: StoreLocation): Promise<number> {
  const count = "SELECT count(*) AS plants FROM plants";
  const [row] = name.startsWith("sqlite") ? readSqlite(file, count) : name === "memory" ? [] : await runSql(url, count);
  return Number(row?.["plants"] ?? 0);
}

function rowOf(name: string, row: Measurement): string {
  return tableRow(
    name,
    [row.connections, 7],
    [Math.round(row.requestsPerS), 12],
    [`${(row.missed * 100).toFixed(0)} %`, 8],
    [Math.round(row.latencyUs.p50), 10],
    [Math.round(row.latencyUs.p99), 10],
    [Math.round(row.pingUs.p99), 10],
    [row.mainUsPerRequest.toFixed(1), 10],
    [row.allUsPerRequest.toFixed(1), 9],
  );
}

/** Returns a table row with a name and values. Each value's column has a width in characters. */
function tableRow(name: string, ...cells: readonly (readonly [value: number | string, width: number])[]): string {
  return name.padEnd(16) + cells.map(([value, width]) => String(value).padStart(width)).join("");
}
