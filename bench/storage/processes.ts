/**
 * Measures how much more several processes on one PostgreSQL delete than a single process, in turns with the same
 * callers. The result is meaningful only if the database, the processes and the callers each have separate cores. `npx
 * node bench/storage/processes.ts [--processes 2] [--callers 256] [--seconds 5] [--turns 5] [--plants 4000000]`
 */
import { availableParallelism } from "node:os";
import { startPostgres } from "../../test/support/plants/postgres-server.ts";
import { runAnywhere } from "../../protoport/bench/load/tool.ts";
import { numberFlags } from "../../protoport/bench/options.ts";
import { median } from "../../protoport/bench/summary.ts";
import { deleteScatteredPlants } from "./load.ts";
import { createPlants } from "./stores.ts";
import { startServer, type SubjectServer } from "./subject.ts";

const flags = numberFlags({ processes: 2, callers: 256, seconds: 5, turns: 5, plants: 4_000_000 });
const { processes, callers, seconds, plants } = flags;

/**
 * Number of cores for a meaningful result. Each process and its callers have separate cores, and the database has as
 * many cores as there are processes.
 */
const minCores = 3 * processes;

// The database is on disk, because the disk's speed is part of the result.
await using postgres = await startPostgres(["-c", "shared_buffers=256MB", "-c", "max_wal_size=4GB"], { onDisk: true });
const url = await createPlants(postgres, plants);

await using started = new AsyncDisposableStack();
const servers: SubjectServer[] = [];
while (servers.length < processes) servers.push(started.use(await startServer("postgres", { file: "", url, plants })));

// The number of load generators is the same in both cases, and each load generator has separate plants.
const begun = servers.map((_, lane) => lane * Math.floor(plants / processes));
const one = servers.map(() => servers[0]?.port ?? 0);
const all = servers.map(({ port }) => port);
for (const ports of [one, all]) await deletionsPerS(ports);

const turns: { readonly one: number; readonly all: number }[] = [];
while (turns.length < flags.turns) {
  const isOdd = turns.length % 2 === 1;
  const first = await deletionsPerS(isOdd ? all : one);
  const second = await deletionsPerS(isOdd ? one : all);
  turns.push(isOdd ? { one: second, all: first } : { one: first, all: second });
}

const cores = availableParallelism();
console.log(`${callers} callers over REST, ${flags.turns} turns of ${seconds} s, ${cores} cores\n`);
console.log(
  `1 process     ${median(turns.map((turn) => turn.one))
    .toFixed(0)
    .padStart(8)} deletions/s`,
);
console.log(
  `${processes} processes   ${median(turns.map((turn) => turn.all))
    .toFixed(0)
    .padStart(8)} deletions/s`,
);
console.log(
  `              ${median(turns.map((turn) => turn.all / turn.one))
    .toFixed(2)
    .padStart(8)} x, turn by turn`,
);
if (cores < minCores)
  console.log(`\nThe result is not meaningful: with fewer than ${minCores} cores, the processes compete for them.`);

/** Deletes with all callers, distributed over ports, and returns the deletions per second. */
async function deletionsPerS(ports: readonly number[]): Promise<number> {
  const results = await Promise.all(
    ports.map((port, lane) => {
      const scattered = { plants, begun: begun[lane] ?? 0 };
      return deleteScatteredPlants(port, Math.floor(callers / processes), seconds, scattered, runAnywhere);
    }),
  );
  if (results.some(({ missed }) => missed > 0)) throw new Error("too few plants: increase --plants");
  // Requests that were interrupted when a load ended may have deleted their plants as well.
  for (const [lane, { requests }] of results.entries()) begun[lane] = (begun[lane] ?? 0) + requests + callers;
  return results.reduce((sum, { requestsPerS }) => sum + requestsPerS, 0);
}
