/**
 * How much more several processes on one PostgreSQL delete than one, by turns and with the same callers. It says
 * something only where the database, the processes and the callers each have cores of their own.
 * `npx node bench/storage/processes.ts [--processes 2] [--callers 256] [--seconds 5] [--turns 5] [--plants 4000000]`
 */
import { availableParallelism } from "node:os";
import { startPostgres } from "../../test/support/plants/postgres-server.ts";
import { runAnywhere } from "../load/tool.ts";
import { numberFlags } from "../options.ts";
import { median } from "../summary.ts";
import { deleteScatteredPlants } from "./load.ts";
import { createPlants } from "./stores.ts";
import { startServer, type SubjectServer } from "./subject.ts";

const flags = numberFlags({ processes: 2, callers: 256, seconds: 5, turns: 5, plants: 4_000_000 });
const { processes, callers, seconds, plants } = flags;

/** Cores that nobody waits for: one for each process and its callers, and as many for the database. */
const coresMin = 3 * processes;

// The disk counts here.
await using postgres = await startPostgres(["-c", "shared_buffers=256MB", "-c", "max_wal_size=4GB"], { onDisk: true });
const url = await createPlants(postgres, plants);

await using started = new AsyncDisposableStack();
const servers: SubjectServer[] = [];
while (servers.length < processes) servers.push(started.use(await startServer("postgres", { file: "", url, plants })));

// As many programs make the load in both cases, each with plants of its own.
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
if (cores < coresMin) console.log(`\nThis says little: with fewer than ${coresMin} cores they take each other's time.`);

/** Deletes with all callers, shared among these ports, and returns the deletions a second. */
async function deletionsPerS(ports: readonly number[]): Promise<number> {
  const results = await Promise.all(
    ports.map((port, lane) => {
      const scattered = { plants, begun: begun[lane] ?? 0 };
      return deleteScatteredPlants(port, Math.floor(callers / processes), seconds, scattered, runAnywhere);
    }),
  );
  if (results.some(({ missed }) => missed > 0)) throw new Error("there were not enough plants: give more by --plants");
  // Those that the end of a load has cut off may be deleted as well.
  for (const [lane, { requests }] of results.entries()) begun[lane] = (begun[lane] ?? 0) + requests + callers;
  return results.reduce((sum, { requestsPerS }) => sum + requestsPerS, 0);
}
