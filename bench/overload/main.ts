/**
 * What a server does when more is asked of it than its store can do: PostgreSQL held to 2,000 deletions a second, first
 * offered nine tenths of that, then three times as much.
 * `npx node bench/overload/main.ts [--seconds 10] [--offered 6000] [--only rest,grpc]`
 */
import { parseArgs } from "node:util";
import { Client } from "pg";
import { migratePlants } from "../../src/stores/index.ts";
import { configOf, runSql, startPostgres } from "../../test/support/plants/postgres-server.ts";
import { percentilesOf } from "../load/load.ts";
import { startServer } from "../storage/subject.ts";
import type { OpenAnswer, OpenOrder, OpenSeen } from "./open-calls.ts";
import { sendOpenLoad } from "./open-load.ts";

const { values } = parseArgs({
  options: {
    seconds: { type: "string", default: "10" },
    offered: { type: "string", default: "6000" },
    only: { type: "string", default: "rest,grpc" },
  },
});
const seconds = Number(values.seconds);

/** Deletions a second that the store is held to. */
const heldTo = 2_000;

/** Enough that none is deleted twice. */
const plantsMade = 1_000_000;

// Until the server has noticed: what happens before is on a line of its own.
const onsetS = 5;

/** As large as the batches of the server under overload. */
const batchSize = 25;

let plants = 0;

await using postgres = await startPostgres();
const heldUrl = await createHeldStore();
await using server = await startServer("postgres", { file: "", url: heldUrl, plants: plantsMade });

// Nothing sleeps for less than it was told to, and on a busy machine for longer: what the store can do is measured.
const [one, other] = await Promise.all([measureConnection(1), measureConnection(2)]);
const canDoPerS = one + other;
console.log(`by itself the store does ${canDoPerS.toFixed(0)} deletions a second\n`);
for (const protocol of ["rest", "grpc"] as const)
  if (values.only.split(",").includes(protocol)) await overload(protocol);

async function overload(protocol: OpenOrder["protocol"]): Promise<void> {
  console.log(`${protocol} offered/s  deleted/s  refused/s  other  p50 ms  p99 ms  p99 refused  main CPU µs a call`);
  await measure(protocol, 500, 3, [{ name: "warm-up", fromS: 0 }]);
  const [below] = await measure(protocol, canDoPerS * 0.9, seconds, [{ name: "below", fromS: 0 }]);
  // One load: between two of them the store would be idle, and its overload over.
  const [, above] = await measure(protocol, Number(values.offered), onsetS + seconds, [
    { name: "onset", fromS: 0 },
    { name: "overload", fromS: onsetS },
  ]);
  if (below === undefined || above === undefined) throw new Error("nothing was measured");
  console.log(`goodput ${(above.deletedPerS / canDoPerS).toFixed(2)} x what the store can do`);
  console.log(`p99 of what is deleted ${(above.p99 / below.p99).toFixed(1)} x that below capacity\n`);
}

/** Makes a store in which each of the two batches at a time takes a millisecond for each of its plants. */
async function createHeldStore(): Promise<string> {
  const url = await postgres.createSchema();
  await migratePlants({ kind: "postgres", url });
  await runSql(url, `INSERT INTO plants SELECT generate_series(1, ${plantsMade})`);
  await runSql(
    url,
    `CREATE FUNCTION hold() RETURNS trigger LANGUAGE plpgsql AS $$
       BEGIN PERFORM pg_sleep((SELECT count(*) FROM gone) * 2.0 / ${heldTo}); RETURN NULL; END $$;
     CREATE TRIGGER hold AFTER DELETE ON plants REFERENCING OLD TABLE AS gone EXECUTE FUNCTION hold()`,
  );
  return url;
}

/** Deletes plants that no load asks for on a connection of its own, and returns how many a second. */
async function measureConnection(place: number): Promise<number> {
  const client = new Client(configOf(heldUrl));
  await client.connect();
  const startedMs = performance.now();
  const batches = 60;
  for (let i = 1; i <= batches; i++) {
    const first = plantsMade - (i * 2 + place) * batchSize;
    await client.query("DELETE FROM plants WHERE id >= $1 AND id < $2", [first, first + batchSize]);
  }
  await client.end();
  return (batches * batchSize * 1_000) / (performance.now() - startedMs);
}

/** A part of a load, from a second of it to the next part. */
interface Part {
  readonly name: string;
  readonly fromS: number;
}

interface Shown {
  readonly deletedPerS: number;
  readonly p99: number;
}

/** Sends a load and shows each part of it; of the CPU, the mean of all of it. */
async function measure(
  protocol: OpenOrder["protocol"],
  callsPerS: number,
  durationS: number,
  parts: readonly Part[],
): Promise<readonly Shown[]> {
  const before = await server.usage();
  const { answers, tookS } = await load(protocol, callsPerS, durationS);
  const after = await server.usage();
  const cpuUs = (after.mainUs - before.mainUs) / answers.length;
  return parts.map(({ name, fromS }, i) => {
    const untilS = parts[i + 1]?.fromS ?? tookS;
    const within = answers.filter(({ dueMs }) => dueMs >= fromS * 1_000 && dueMs < untilS * 1_000);
    return show(`${name} ${callsPerS.toFixed(0)}`, within, untilS - fromS, cpuUs);
  });
}

function show(name: string, answers: readonly OpenAnswer[], tookS: number, cpuUs: number): Shown {
  const of = (kind: OpenAnswer["kind"]): OpenAnswer[] => answers.filter((answer) => answer.kind === kind);
  const deletedPerS = of("deleted").length / tookS;
  const latency = percentiles(of("deleted"));
  const columns = [
    name.padEnd(14),
    deletedPerS.toFixed(0).padStart(7),
    (of("refused").length / tookS).toFixed(0).padStart(10),
    String(of("other").length).padStart(6),
    latency.p50.toFixed(1).padStart(7),
    latency.p99.toFixed(1).padStart(7),
    percentiles(of("refused")).p99.toFixed(1).padStart(12),
    cpuUs.toFixed(1).padStart(20),
  ];
  console.log(columns.join(" "));
  return { deletedPerS, p99: latency.p99 };
}

function percentiles(answers: readonly OpenAnswer[]): { readonly p50: number; readonly p99: number } {
  return percentilesOf(Float64Array.from(answers, ({ latencyMs }) => latencyMs));
}

async function load(protocol: OpenOrder["protocol"], callsPerS: number, durationS: number): Promise<OpenSeen> {
  const order: OpenOrder = { protocol, port: server.port, callsPerS, durationS, firstPlant: plants + 1 };
  plants += Math.ceil(callsPerS * durationS * 1.2);
  return await sendOpenLoad(order);
}
