import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { shared } from "../../../protoport/testing/src/shared.ts";
import { migratePostgres } from "../../../src/stores/postgres/all-plants/plant-database.ts";
import { Callers, callerToken } from "../cluster/callers.ts";
import { checkHistory, readTables } from "../cluster/check-history.ts";
import { runSql } from "../../support/plants/postgres-server.ts";
import { baseUrlOf, serve } from "../../support/process/serve-command.ts";
import { createTempFolder, Dice, testSeed } from "@protoport/testing/process";
import { type CitusCluster, startCitus } from "./citus-cluster.ts";

/** Number of plants, more than the callers can delete during the test. */
const plants = 40_000;
/** Outages in ms: one shorter and one longer than the ten seconds after which calls fail. */
const [brieflyMs, longMs] = [1_000, 12_000];
const callsBetween = 1_000;
const timeout = 180_000;
const cluster = shared(() => startCitus());

/** Faults that are injected one after another. The cluster recovers from each before the next. */
const faults: readonly { readonly name: string; readonly inject: () => Promise<void> }[] = [
  { name: "a worker is killed and restarted", inject: () => killFor(cluster.workers[0], brieflyMs) },
  { name: "a worker is frozen", inject: () => freezeFor(cluster.workers[1], longMs) },
  { name: "the coordinator is killed and restarted", inject: () => killFor(cluster.coordinator, brieflyMs) },
];

async function killFor(node: CitusCluster["coordinator"] | undefined, ms: number): Promise<void> {
  await node?.kill();
  await sleep(ms);
  await node?.start();
}

async function freezeFor(node: CitusCluster["coordinator"] | undefined, ms: number): Promise<void> {
  node?.signal("SIGSTOP");
  await sleep(ms);
  node?.signal("SIGCONT");
}

test("every response is correct while servers are killed and frozen", { timeout }, async () => {
  const url = await cluster.createSchema(32);
  await migratePostgres(url);
  await runSql(url, `INSERT INTO plants SELECT unnest(ARRAY(SELECT generate_series(1, ${plants})::bigint))`);
  using folder = createTempFolder();
  await using one = serve(folder, { DATABASE_URL: url, PLANTSTORE_TOKENS: callerToken });
  await using other = serve(folder, { DATABASE_URL: url, PLANTSTORE_TOKENS: callerToken });
  const replicas = [
    { machine: { name: "one" }, replicaUrl: await baseUrlOf(one) },
    { machine: { name: "other" }, replicaUrl: await baseUrlOf(other) },
  ];
  const created = Array.from({ length: plants }, (_, i) => i + 1);
  const callers = new Callers(replicas, new Dice(testSeed));
  callers.offer(created);
  callers.start();
  await callers.untilAllDelete();
  for (const { name, inject } of faults) {
    const more = callers.calls.length + callsBetween;
    await expect.poll(() => callers.calls.length, { timeout }).toBeGreaterThan(more);
    const sinceMs = performance.now();
    await inject();
    await callers.untilAllDelete();
    const pauses = replicas.map((replica) => (callers.longestPauseMs(replica, sinceMs) / 1_000).toFixed(1));
    process.stdout.write(`${name}: longest time without a deletion ${pauses.join(" and ")} s\n`);
  }
  await callers.stop();
  const { calls } = callers;
  const history = { created: new Set(created), perhapsCreated: new Set<number>(), calls };
  const counts = (["deleted", "not found", "refused", "unknown"] as const).map(
    (outcome) => `${calls.filter((call) => call.outcome === outcome).length} ${outcome}`,
  );
  process.stdout.write(`${calls.length} calls: ${counts.join(", ")}\n`);
  const verdict = checkHistory(history, await readTables((sql) => runSql(url, sql)));
  expect(verdict).toEqual({ lost: [], doubled: [], wrong: [] });
});
