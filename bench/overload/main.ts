/**
 * Measures a server under more load than its store can handle. PostgreSQL is limited to 2,000 deletions per second. The
 * program first sends nine tenths of this limit, and then three times the limit. `npx node bench/overload/main.ts
 * [--seconds 10] [--offered 6000] [--only rest,grpc] [--connections 500,5000]`
 *
 * With --connections, the program measures only the overload, from each number of connections. The latency of `/readyz`
 * is measured at the same time.
 */
import { parseArgs } from "node:util";
import { Client } from "pg";
import { migratePlants } from "../../src/stores/index.ts";
import { configOf, runSql, startPostgres } from "../../test/support/plants/postgres-server.ts";
import { percentilesOf } from "../../protoport/bench/load/load.ts";
import { startServer } from "../storage/subject.ts";
import type { OpenResponse, OpenLoadOptions, OpenResult } from "./open-calls.ts";
import { sendOpenLoad } from "./open-load.ts";
import { probeReadiness } from "../../protoport/bench/overload/probe-readiness.ts";

const { values } = parseArgs({
  options: {
    seconds: { type: "string", default: "10" },
    offered: { type: "string", default: "6000" },
    only: { type: "string", default: "rest,grpc" },
    connections: { type: "string", default: "" },
  },
});
const seconds = Number(values.seconds);

/** The deletions per second to which the store is limited. */
const heldTo = 2_000;

/** Number of plants. There are enough plants that no plant is deleted twice. */
const plantsMade = 1_000_000;

// Seconds in which the server adapts to the overload. The responses in this time are reported on a separate line.
const onsetS = 5;

/** The batch size with which the capacity is measured. */
const batchSize = 25;

let plants = 0;

await using postgres = await startPostgres();
const heldUrl = await createHeldStore();
await using server = await startServer("postgres", { file: "", url: heldUrl, plants: plantsMade });

// The store's capacity is measured, because a sleep may take longer than the requested time on a busy machine.
const [one, other] = await Promise.all([measureConnection(1), measureConnection(2)]);
const capacityPerS = one + other;
console.log(`capacity of the store: ${capacityPerS.toFixed(0)} deletions/s\n`);
const numbersOfConnections = values.connections.split(",").filter(Boolean).map(Number);
for (const protocol of ["rest", "grpc"] as const) {
  if (!values.only.split(",").includes(protocol)) continue;
  if (numbersOfConnections.length === 0) await overload(protocol);
  for (const connections of numbersOfConnections) await overloadFrom(protocol, connections);
}

function showColumns(protocol: OpenLoadOptions["protocol"]): void {
  console.log(`${protocol} offered/s  deleted/s  refused/s  other  p50 ms  p99 ms  p99 refused  main CPU µs a call`);
}

async function overloadFrom(protocol: OpenLoadOptions["protocol"], connections: number): Promise<void> {
  console.log(`${connections} connections`);
  showColumns(protocol);
  const end = new AbortController();
  const probing = probeReadiness(server.port, end.signal);
  const parts = [
    { name: "onset", fromS: 0 },
    { name: "overload", fromS: onsetS },
  ];
  await measure(protocol, Number(values.offered), onsetS + seconds, parts, connections).finally(() => end.abort());
  const latencies = await probing;
  const { p50, p99 } = percentilesOf(Float64Array.from(latencies.filter(Number.isFinite)));
  const failed = latencies.filter((latency) => !Number.isFinite(latency)).length;
  console.log(`/readyz: p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms, ${failed} of ${latencies.length} failed\n`);
}

async function overload(protocol: OpenLoadOptions["protocol"]): Promise<void> {
  showColumns(protocol);
  await measure(protocol, 500, 3, [{ name: "warm-up", fromS: 0 }]);
  const [below] = await measure(protocol, capacityPerS * 0.9, seconds, [{ name: "below", fromS: 0 }]);
  // There is a single load, because between two loads the store would be idle, which would end the overload.
  const [, above] = await measure(protocol, Number(values.offered), onsetS + seconds, [
    { name: "onset", fromS: 0 },
    { name: "overload", fromS: onsetS },
  ]);
  if (below === undefined || above === undefined) throw new Error("no results");
  console.log(`goodput ${(above.deletedPerS / capacityPerS).toFixed(2)} x the capacity of the store`);
  console.log(`p99 of deletions ${(above.p99 / below.p99).toFixed(1)} x that below capacity\n`);
}

/** Creates a store in which each of two concurrent batches takes a millisecond per plant. */
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

/** Deletes plants on a separate connection, and returns the deletions per second. No load deletes the same plants. */
async function measureConnection(offset: number): Promise<number> {
  const client = new Client(configOf(heldUrl));
  await client.connect();
  const startedMs = performance.now();
  const batches = 60;
  for (let i = 1; i <= batches; i++) {
    const first = plantsMade - (i * 2 + offset) * batchSize;
    await client.query("DELETE FROM plants WHERE id >= $1 AND id < $2", [first, first + batchSize]);
  }
  await client.end();
  return (batches * batchSize * 1_000) / (performance.now() - startedMs);
}

/** The part of a load between two times in seconds. */
interface Part {
  readonly name: string;
  readonly fromS: number;
}

interface Shown {
  readonly deletedPerS: number;
  readonly p99: number;
}

/** Sends a load and prints each part, with the whole load's mean CPU time. */
async function measure(
  protocol: OpenLoadOptions["protocol"],
  callsPerS: number,
  durationS: number,
  parts: readonly Part[],
  connections?: number,
): Promise<readonly Shown[]> {
  const before = await server.usage();
  const { responses, tookS } = await load(protocol, callsPerS, durationS, connections);
  const after = await server.usage();
  const cpuUs = (after.mainUs - before.mainUs) / responses.length;
  return parts.map(({ name, fromS }, i) => {
    const untilS = parts[i + 1]?.fromS ?? tookS;
    const within = responses.filter(({ startMs }) => startMs >= fromS * 1_000 && startMs < untilS * 1_000);
    return show(`${name} ${callsPerS.toFixed(0)}`, within, untilS - fromS, cpuUs);
  });
}

function show(name: string, responses: readonly OpenResponse[], tookS: number, cpuUs: number): Shown {
  const of = (kind: OpenResponse["kind"]): OpenResponse[] => responses.filter((response) => response.kind === kind);
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

function percentiles(responses: readonly OpenResponse[]): { readonly p50: number; readonly p99: number } {
  return percentilesOf(Float64Array.from(responses, ({ latencyMs }) => latencyMs));
}

async function load(
  protocol: OpenLoadOptions["protocol"],
  callsPerS: number,
  durationS: number,
  connections?: number,
): Promise<OpenResult> {
  const options: OpenLoadOptions = {
    protocol,
    port: server.port,
    callsPerS,
    durationS,
    firstPlant: plants + 1,
    connections,
  };
  plants += Math.ceil(callsPerS * durationS * 1.2);
  return await sendOpenLoad(options);
}
