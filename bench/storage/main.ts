/**
 * What durable deletions cost: deletes of random plants end to end, on each store, against the same server with one
 * transaction a request, against the same server in memory, and against the store without a server.
 * `npx node bench/storage/main.ts [--plants 1000000] [--seconds 5] [--only sqlite,postgres]`
 */
import { parseArgs } from "node:util";
import { readSqlite } from "../../test/support/plants/sqlite-file.ts";
import { createTempFolder } from "../../packages/testing/src/process/temp-folder.ts";
import { runSql, startPostgres } from "../../test/support/plants/postgres-server.ts";
import { measureByTurns, type TurnsSeen } from "./by-turns.ts";
import { createPlace, isStoreName, type Place, type StoreName, stores } from "./stores.ts";
import { measureAlone, measureGrpc, type Measurement, measureRest } from "./subject.ts";

// One caller alone, and enough of them that a queue fills.
const connections = [1, 32, 256];

// By turns, whatever the options say: so many that the median says something, and twice the plants that the fastest
// store deletes meanwhile.
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
// The disk counts here.
await using postgres = await startPostgres(["-c", "shared_buffers=256MB", "-c", "max_wal_size=4GB"], { onDisk: true });

console.log(`DELETE /plants/<random> over HTTP/1.1, ${plants} plants; µs a request\n`);
console.log("store             conns  requests/s  missed       p50       p99  ping p99  main CPU  all CPU");
for (const name of names) {
  const rows = await measureRest(name, await prepare(name, plants), connections, seconds);
  for (const measured of rows) console.log(rowOf(name, measured));
}

const durable = names.filter((name) => name !== "memory" && !name.endsWith("single"));
if (durable.length > 0) {
  console.log(`\nby turns with memory, ${rounds} rounds of a second, 256 connections, each plant once; µs a request\n`);
  console.log("store           requests/s  main CPU  above memory");
  for (const { name, requestsPerS, mainUs, mainUsAbove } of await byTurns(["memory", ...durable], 256)) {
    console.log(tableRow(name, [Math.round(requestsPerS), 10], [mainUs.toFixed(1), 10], [mainUsAbove.toFixed(1), 14]));
  }
}

const oneByOne = { sqlite: "sqlite single", postgres: "postgres single" } as const;
for (const name of ["sqlite", "postgres"] as const) {
  if (!names.includes(name)) continue;
  console.log(`\nby turns with one statement a request, ${rounds} rounds of a second, one caller; p50 in µs\n`);
  for (const seen of await byTurns([oneByOne[name], name], 1)) {
    console.log(tableRow(seen.name, [seen.p50Us.toFixed(0), 6], [`${seen.p50Times.toFixed(2)} x`, 10]));
  }
  console.log(`\nby turns with one statement a request, ${rounds} rounds of a second, 256 connections; requests/s\n`);
  for (const seen of await byTurns([oneByOne[name], name], 256)) {
    console.log(tableRow(seen.name, [seen.requestsPerS.toFixed(0), 6], [`${seen.requestsTimes.toFixed(2)} x`, 10]));
  }
}

console.log(`\ngRPC, 256 calls at a time, each plant once; the store alone is asked the same without a server\n`);
console.log("store           requests/s       p50       p99  store alone  share");
for (const name of names.filter((grouped) => !grouped.endsWith("single"))) {
  const place = await prepare(name, plants);
  const grpc = await measureGrpc(name, place, seconds);
  const gone = plants - (await countPlants(name, place));
  if (name !== "memory" && gone !== grpc.requests) throw new Error(`${grpc.requests} answers, and ${gone} plants gone`);
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

async function byTurns(compared: readonly StoreName[], callers: number): Promise<readonly TurnsSeen[]> {
  const places = await Promise.all(
    compared.map(async (name) => ({ name, place: await prepare(name, plantsOfRounds) })),
  );
  return await measureByTurns(places, callers, rounds);
}

/** A new store of this kind that holds so many plants. */
function prepare(name: StoreName, count: number): Promise<Place> {
  return createPlace(name, count, folder.file(`${++storesMade}.db`), postgres);
}

/** How many plants are left; those of `memory` are gone with their process. */
async function countPlants(name: StoreName, { file, url }: Place): Promise<number> {
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

/** A row of a table: a name, and values in columns of so many characters. */
function tableRow(name: string, ...cells: readonly (readonly [value: number | string, width: number])[]): string {
  return name.padEnd(16) + cells.map(([value, width]) => String(value).padStart(width)).join("");
}
