import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import type { Deletion } from "../../../../../src/stores/postgres/delete/deletion.ts";
import { citusPlacement } from "../../../../../src/stores/citus/citus-placement.ts";
import { Shards } from "../../../../../src/stores/citus/shards.ts";
import { findOutcomeOfRefused } from "../../../../../src/stores/postgres/delete/attempt-batch.ts";
import { prepareBatch } from "../../../../../src/stores/postgres/delete/prepared-batch.ts";
import type { Placement } from "../../../../../src/stores/postgres/delete/placement.ts";
import { readServerUrl } from "../../../../../src/stores/postgres/server/server-url.ts";
import { Session } from "../../../../../src/stores/postgres/server/session.ts";
import { deleteCall } from "../../../../support/plants/delete-call.ts";
import { cancelWaitsForStandby, runSql, withoutStandby } from "../../../../support/plants/postgres-server.ts";
import { schemaOf } from "../../../../support/plants/schema-of.ts";
import { sentDeletion } from "../../../../support/plants/run-batch.ts";
import { startPostgresOfFile } from "../../../../support/plants/postgres-of-file.ts";

// Statements that a store on Citus runs without the function that deletes, on a connection whose settings another
// pooler client has changed. A server without workers suffices, because the pooler is in front of the coordinator.

const server = await startPostgresOfFile();

const token = randomUUID();

function pendingOf(id: bigint, idempotencyKey?: string): Deletion {
  return sentDeletion(id, deleteCall({ idempotencyKey }));
}

interface Asked {
  readonly name: string;
  readonly ask: (session: Session, placement: Placement) => Promise<unknown>;
  /** The expected result. */
  readonly want: unknown;
}

const requested: readonly Asked[] = [
  {
    name: "a lookup by idempotency key",
    ask: async (session, placement) =>
      (await placement.findKeyRecords(session, [pendingOf(8n, "used")])).map(([key, id]) => [key, id]),
    want: [["used", "8"]],
  },
  {
    name: "a lookup of a batch's records",
    ask: (session, placement) => findOutcomeOfRefused(session, placement, prepareBatch(token, [pendingOf(9n)])),
    want: "deleted",
  },
  {
    name: "dropping expired records",
    ask: (session, placement) => placement.dropOldRecords(session, 3_600_000, { max: 10 }),
    want: { count: 2, isMore: false },
  },
];

/** Opens a session on a store with plant 7 and day-old records for plants 8 and 9. */
async function openRecorded(): Promise<{
  readonly url: string;
  readonly session: Session;
  readonly placement: Placement;
}> {
  const url = await server.createPlants([7n]);
  await runSql(
    url,
    `INSERT INTO deletions (plant_id, deleted_at, subject, request_id, batch, idempotency_key)
     VALUES (8, now() - interval '1 day', 'tester', 'r', '${token}', 'used'),
       (9, now() - interval '1 day', 'tester', 'r', '${token}', NULL)`,
  );
  const session = new Session(readServerUrl(url));
  return { url, session, placement: citusPlacement(schemaOf(session), new Shards([2 ** 31 - 1], [0])) };
}

test.each(requested)("$name waits for its standby despite synchronous_commit = off", async ({ ask, want }) => {
  const { url, session, placement } = await openRecorded();
  await session.run("SET synchronous_commit = off");
  const asking = await withoutStandby(url, async () => {
    await expect.poll(() => session.query("SHOW synchronous_standby_names")).toEqual([["nobody"]]);
    const running = ask(session, placement);
    const waits = `SELECT FROM pg_stat_activity WHERE pid = ${session.processId} AND wait_event = 'SyncRep'`;
    await expect.poll(() => runSql(url, waits)).toHaveLength(1);
    return { running };
  });
  await expect(asking.running).resolves.toEqual(want);
  await session.close();
});

test.each(requested)("$name is in doubt after a cancelled wait, with client_min_messages = error", async ({ ask }) => {
  const { url, session, placement } = await openRecorded();
  await session.run("SET client_min_messages = error");
  await withoutStandby(url, async () => {
    await expect.poll(() => session.query("SHOW synchronous_standby_names")).toEqual([["nobody"]]);
    const asking = expect(ask(session, placement)).rejects.toThrow("not confirmed by its synchronous standbys");
    await expect.poll(() => cancelWaitsForStandby(url)).toHaveLength(1);
    await asking;
  });
  await session.close();
});

// A lookup of plants writes nothing, and no deletion is acknowledged after its commit.
const looksForPlants: Asked = {
  name: "a lookup of plants",
  ask: (session, placement) => placement.findPlants(session, [7n, 9n]),
  want: [7n],
};

test.each([...requested, looksForPlants])(
  "$name runs with the URL's role, not the connection's role",
  async ({ ask, want }) => {
    const { url, session, placement } = await openRecorded();
    const role = `blind_${randomUUID().replaceAll("-", "")}`;
    await runSql(
      url,
      `CREATE ROLE ${role}; GRANT ALL ON plants, deletions TO ${role}; ALTER TABLE deletions ENABLE ROW LEVEL SECURITY;
     ALTER TABLE plants ENABLE ROW LEVEL SECURITY`,
    );
    await runSql(url, `DO $$ BEGIN EXECUTE format('GRANT USAGE ON SCHEMA %I TO ${role}', current_schema()); END $$`);
    await session.run(`SET ROLE ${role}`);
    await expect(ask(session, placement)).resolves.toEqual(want);
    await session.close();
  },
);
