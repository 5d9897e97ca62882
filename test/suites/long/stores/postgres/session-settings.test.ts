import { randomUUID } from "node:crypto";
import { beforeAll, describe, expect, test } from "vitest";
import { closing } from "@protoport/testing/process";
// oxfmt-ignore
import { addPlants, migratePostgres, openPostgresDatabase
} from "../../../../../src/stores/postgres/all-plants/plant-database.ts";
import { dropOldRecords } from "../../../../../src/stores/postgres/all-plants/retention.ts";
import { singleServer } from "../../../../../src/stores/postgres/delete/store-tables.ts";
import { openPostgresStore } from "../../../../../src/stores/postgres/postgres-store.ts";
import { migrate } from "../../../../../src/stores/postgres/schema/migrate.ts";
import type { StoreSchema } from "../../../../../src/stores/postgres/schema/store-schema.ts";
import { readServerUrl } from "../../../../../src/stores/postgres/server/server-url.ts";
import { Session } from "../../../../../src/stores/postgres/server/session.ts";
// oxfmt-ignore
import { cancelWaitsForStandby, deleteCall, describePlantDatabase, describePlantStore, factsOfOwnDatabase, readPlants,
  runBatchWith, runSql, schemaOf, type SentDeletion, sentDeletion, startPostgresOfFile, withoutStandby
} from "../../../../support/plants/index.ts";

// A session has the settings of its database and role and, behind a pooler, those that other clients have set on its
// connection. docs/reference/postgresql.md lists the settings that could affect the store's guarantees.

const server = await startPostgresOfFile();

function pendingOf(id: bigint, idempotencyKey?: string, doubts: readonly string[] = []): SentDeletion {
  return { ...sentDeletion(id, deleteCall({ idempotencyKey })), doubts: [...doubts] };
}

const token = randomUUID();

const recordSql = (id: number, key: string): string =>
  `INSERT INTO deletions (plant_id, subject, request_id, batch, idempotency_key)
   VALUES (${id}, 'tester', 'r', '${token}', ${key})`;

const importing = { restore: false, skipsExisting: true };

/** All operations that are acknowledged once their commit is durable. */
const acknowledged: readonly { name: string; work: (session: Session) => Promise<unknown> }[] = [
  { name: "a single deletion", work: (session) => runBatchWith(session, [pendingOf(1n)]) },
  { name: "a batch of deletions", work: (session) => runBatchWith(session, [pendingOf(1n), pendingOf(2n)]) },
  { name: "a deletion with a key", work: (session) => runBatchWith(session, [pendingOf(1n, "a"), pendingOf(2n)]) },
  { name: "a deletion with a used key", work: (session) => runBatchWith(session, [pendingOf(8n, "used")]) },
  {
    name: "a completed deletion in doubt",
    work: (session) => runBatchWith(session, [pendingOf(9n, undefined, [token])]),
  },
  { name: "a deletion of a missing plant", work: (session) => runBatchWith(session, [pendingOf(7n)]) },
  {
    name: "an import",
    work: (session) => addPlants(session, schemaOf(session), [5n], { ...importing, skipsExisting: false }),
  },
  {
    name: "an import of existing plants",
    work: (session) => addPlants(session, schemaOf(session), [1n, 6n], importing),
  },
  { name: "a write check", work: (session) => singleServer(schemaOf(session)).checkWrite(session) },
];

async function createRecorded(): Promise<string> {
  const url = await server.createPlants([1n, 2n, 3n]);
  await runSql(url, `${recordSql(8, "'used'")}; ${recordSql(9, "NULL")}`);
  return url;
}

/** Commits in this session that wait for a standby. */
const waitingSql = (session: Session): string =>
  `SELECT FROM pg_stat_activity WHERE pid = ${session.processId} AND wait_event = 'SyncRep'`;

describe.each(["off", "local", "remote_write", "on"])("with synchronous_commit = %s from another client", (value) => {
  test.each(acknowledged)("$name is acknowledged only after the standby has it", async ({ work }) => {
    const url = await createRecorded();
    await using session = closing(new Session(readServerUrl(url)));
    await session.run(`SET synchronous_commit = ${value}`);
    let isDone = false;
    const working = await withoutStandby(url, async () => {
      await expect.poll(() => session.query("SHOW synchronous_standby_names")).toEqual([["nobody"]]);
      const running = work(session).then(() => (isDone = true));
      await expect.poll(() => runSql(url, waitingSql(session))).toHaveLength(1);
      expect(isDone).toBe(false);
      return { running };
    });
    await expect(working.running).resolves.toBe(true);
  });
});

/** The operations by which servers and `migrate` change the tables, with SQL that makes each necessary. */
const upkeep: readonly {
  readonly name: string;
  readonly before?: string;
  readonly work: (session: Session, schema: StoreSchema) => Promise<unknown>;
}[] = [
  {
    name: "a step of migrate",
    work: (session, schema) =>
      migrate({ session, schema, steps: [{ table: "plants", sql: "CREATE TABLE step (id int)" }] }),
  },
  { name: "the drop of records", work: (session, schema) => dropOldRecords(session, schema, 1, { max: 10 }) },
];

async function createNeglected(before = ""): Promise<string> {
  const url = await createRecorded();
  const sql = `INSERT INTO deletions (plant_id, deleted_at, subject, request_id, batch)
     VALUES (1, now() - interval '3 days', '', '', gen_random_uuid())`;
  await runSql(url, sql);
  await runSql(url, before);
  return url;
}

describe("settings from another pooler client", () => {
  test.each(upkeep)("do not prevent $name from waiting for the standby", async ({ before, work }) => {
    const url = await createNeglected(before);
    await using session = closing(new Session(readServerUrl(url)));
    await session.run("SET synchronous_commit = off");
    const working = await withoutStandby(url, async () => {
      await expect.poll(() => session.query("SHOW synchronous_standby_names")).toEqual([["nobody"]]);
      const running = work(session, schemaOf(session));
      await expect.poll(() => runSql(url, waitingSql(session))).toHaveLength(1);
      return { running };
    });
    await working.running;
  });

  test.each(upkeep)("do not prevent $name on the same connection", async ({ before, work }) => {
    const url = await createNeglected(before);
    const role = `other_${randomUUID().replaceAll("-", "")}`;
    await runSql(url, `CREATE ROLE ${role}`);
    await using session = closing(new Session(readServerUrl(url)));
    await session.run(`SET default_transaction_read_only = on; SET row_security = off; SET ROLE ${role}`);
    await work(session, schemaOf(session));
  });
});

test("migrate waits for its synchronous standby despite synchronous_commit = off", async () => {
  const url = await server.createSchema();
  const role = "migrates_softly";
  await runSql(url, `CREATE ROLE ${role} LOGIN SUPERUSER; ALTER ROLE ${role} SET synchronous_commit = off`);
  const waiting = `SELECT FROM pg_stat_activity WHERE usename = '${role}' AND wait_event = 'SyncRep'`;
  const migrating = await withoutStandby(url, async () => {
    const running = migratePostgres(url.replace("user=tester", `user=${role}`));
    await expect.poll(() => runSql(url, waiting)).toHaveLength(1);
    return { running };
  });
  await expect(migrating.running).resolves.toMatchObject({ from: 0 });
});

describe("synchronous_commit at a deletion's commit", () => {
  test.each([
    { configured: "on", set: "off", want: "on" },
    { configured: "off", set: "off", want: "on" },
    { configured: "local", set: "remote_write", want: "on" },
    { configured: "on", set: "remote_apply", want: "on" },
    { configured: "remote_apply", set: "off", want: "remote_apply" },
    { configured: "remote_apply", set: "on", want: "remote_apply" },
  ])('is $want if the role has "$configured" and another client left "$set"', async ({ configured, set, want }) => {
    const url = await server.createPlants([1n, 2n, 3n]);
    // A deferred trigger runs at the commit.
    const sql = `CREATE TABLE seen (place serial, value text);
         CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS
           $$ BEGIN INSERT INTO seen (value) VALUES (current_setting('synchronous_commit')); RETURN NULL; END $$;
         CREATE CONSTRAINT TRIGGER see AFTER DELETE ON plants DEFERRABLE INITIALLY DEFERRED
           FOR EACH ROW EXECUTE FUNCTION see()`;
    await runSql(url, sql);
    const role = `commits_${configured}_${set}`;
    await runSql(url, `CREATE ROLE ${role} LOGIN SUPERUSER; ALTER ROLE ${role} SET synchronous_commit = ${configured}`);
    const session = new Session(readServerUrl(url.replace("user=tester", `user=${role}`)));
    await session.run(`SET synchronous_commit = ${set}`);
    await runBatchWith(session, [pendingOf(1n)]);
    await runBatchWith(session, [pendingOf(2n)]);
    await runBatchWith(session, [pendingOf(3n), pendingOf(9n)]);
    // The other client's setting is restored.
    await expect(session.query("SHOW synchronous_commit")).resolves.toEqual([[set]]);
    await session.close();
    const seen = await runSql(url, "SELECT value FROM seen ORDER BY place");
    expect(seen.map(({ value }) => value)).toEqual([want, want, want]);
  });
});

const inDoubt = acknowledged.slice(0, -1);
test.each(inDoubt)("$name is in doubt after a cancelled standby wait without warnings", async ({ work }) => {
  const url = await createRecorded();
  await using session = closing(new Session(readServerUrl(url)));
  session.deadlineMs = performance.now() + 3_000;
  await session.run("SET client_min_messages = error");
  await withoutStandby(url, async () => {
    await expect.poll(() => session.query("SHOW synchronous_standby_names")).toEqual([["nobody"]]);
    const settled = work(session).then(() => "acknowledged");
    const working = settled.catch(() => "in doubt");
    await expect.poll(() => cancelWaitsForStandby(url)).toHaveLength(1);
    await expect(working).resolves.toBe("in doubt");
  });
});

describe("with session_replication_role = replica", () => {
  test.each([
    { name: "a foreign key", sql: "CREATE TABLE beds (plant bigint REFERENCES plants); INSERT INTO beds VALUES (1)" },
    {
      name: "a trigger",
      sql: `CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'kept'; END $$;
        CREATE TRIGGER keep BEFORE DELETE ON plants FOR EACH ROW EXECUTE FUNCTION keep()`,
    },
  ])("$name still protects a plant", async ({ sql }) => {
    const url = await server.createPlants([1n, 2n]);
    await runSql(url, sql);
    const session = new Session(readServerUrl(url));
    await session.run("SET session_replication_role = replica");
    const kept = Promise.withResolvers<boolean>();
    await runBatchWith(session, [sentDeletion(1n, deleteCall(), kept.resolve, kept.reject)]);
    await expect(kept.promise).rejects.toThrow(/does not allow deleting plant 1/);
    await session.close();
    expect(await runSql(url, "SELECT id FROM plants ORDER BY id")).toEqual([{ id: "1" }, { id: "2" }]);
  });
});

describe("with settings from another pooler client", () => {
  /** Returns a URL whose role sees all plants except plant 9, because of row security. */
  async function createGuarded(): Promise<string> {
    const url = await server.createPlants([1n, 2n, 9n]);
    const [row] = await runSql(url, "SELECT current_schema() AS name");
    const role = `guarded_${String(row?.["name"])}`;
    const sql = `CREATE ROLE ${role} LOGIN; CREATE ROLE ${role}_other; GRANT ${role}_other TO ${role};
       GRANT USAGE ON SCHEMA ${String(row?.["name"])} TO ${role};
       GRANT ALL ON plants, deletions TO ${role}; GRANT SELECT ON plantstore_schema TO ${role}`;
    await runSql(url, sql);
    return url.replace("user=tester", `user=${role}`);
  }

  test.each([
    { name: "default_transaction_read_only", sql: () => "SET default_transaction_read_only = on" },
    { name: "role", sql: (role: string) => `SET ROLE ${role}_other` },
  ])("$name does not affect a deletion", async ({ sql }) => {
    const url = await createGuarded();
    const role = new URL(url).searchParams.get("user") ?? "";
    const session = new Session(readServerUrl(url));
    await session.run(sql(role));
    // A pooler would reuse a connection with these settings.
    const { processId } = session;
    await expect(runBatchWith(session, [pendingOf(1n), pendingOf(7n)])).resolves.toEqual([true, false]);
    await expect(runBatchWith(session, [pendingOf(2n, "key")])).resolves.toEqual([true]);
    await expect(runBatchWith(session, [pendingOf(2n)])).resolves.toEqual([false]);
    await singleServer(schemaOf(session)).checkWrite(session);
    expect(session.processId).toBe(processId);
    await session.close();
    expect(await runSql(url.replace(role, "tester"), "SELECT id FROM plants")).toEqual([{ id: "9" }]);
  });

  describe("with a role that the server accepts", () => {
    /** Returns a role's URL. Row security hides all plants except plant 9 from this role or from another role. */
    async function createHidden(
      hasAll: "own" | "other" = "own",
    ): Promise<{ readonly url: string; readonly role: string }> {
      const url = await server.createPlants([1n, 2n, 3n, 4n, 9n]);
      const [row] = await runSql(url, "SELECT current_schema() AS name");
      const [schema, role] = [String(row?.["name"]), `hidden_${String(row?.["name"])}`];
      await runSql(
        url,
        `CREATE ROLE ${role} LOGIN NOINHERIT; CREATE ROLE ${role}_other; GRANT ${role}_other TO ${role};
         GRANT USAGE ON SCHEMA ${schema} TO ${role}, ${role}_other;
         GRANT ALL ON plants, deletions TO ${role}, ${role}_other; GRANT SELECT ON plantstore_schema TO ${role};
         ALTER TABLE plants ENABLE ROW LEVEL SECURITY;
         CREATE POLICY one ON plants USING (id = 9);
         ALTER ROLE ${hasAll === "own" ? role : `${role}_other`} BYPASSRLS`,
      );
      return { url: url.replace("user=tester", `user=${role}`), role };
    }

    test.each([
      { name: "a single deletion", ids: [1n], want: [true] },
      { name: "a batch", ids: [1n, 2n, 7n], want: [true, true, false] },
      { name: "a deletion of a missing plant", ids: [7n], want: [false] },
      { name: "a single deletion with a key", ids: [3n], key: "key", want: [true] },
      { name: "a completed deletion in doubt", ids: [8n], doubts: [token], want: [true] },
    ])("$name runs with the URL's role", async ({ ids, key, doubts, want }) => {
      const { url, role } = await createHidden();
      await runSql(url.replace(role, "tester"), recordSql(8, "NULL"));
      await using session = closing(new Session(readServerUrl(url)));
      await session.run(`SET ROLE ${role}_other`);
      const pending = ids.map((id) => pendingOf(id, key, doubts));
      await expect(runBatchWith(session, pending)).resolves.toEqual(want);
    });

    test("a deletion uses the role that ALTER ROLE sets for the user", async () => {
      const { url, role } = await createHidden("other");
      await runSql(url.replace(role, "tester"), `ALTER ROLE ${role} SET role = ${role}_other`);
      await using session = closing(new Session(readServerUrl(url)));
      await session.run("SET ROLE none");
      await expect(runBatchWith(session, [pendingOf(1n)])).resolves.toEqual([true]);
    });
  });
});

test("a store reports disabled triggers that the user cannot enable", async () => {
  const url = await server.createPlants([1n]);
  const [row] = await runSql(url, "SELECT current_schema() AS name");
  const role = `replica_${String(row?.["name"])}`;
  const sql = `CREATE ROLE ${role} LOGIN; GRANT USAGE ON SCHEMA ${String(row?.["name"])} TO ${role};
     GRANT ALL ON plants, deletions TO ${role}; GRANT SELECT ON plantstore_schema TO ${role};
     ALTER ROLE ${role} SET session_replication_role = replica`;
  await runSql(url, sql);
  const ofRole = url.replace("user=tester", `user=${role}`);
  const refused = openPostgresStore({ url: ofRole });
  await expect(refused).rejects.toThrow('permission denied to set parameter "session_replication_role"');
  const session = new Session(readServerUrl(ofRole));
  await expect(runBatchWith(session, [pendingOf(1n)])).rejects.toMatchObject({ fault: { code: "42501" } });
  const remaining = `SELECT state FROM pg_stat_activity WHERE usename = '${role}' AND state LIKE '%transaction%'`;
  await expect.poll(() => runSql(url, remaining)).toEqual([]);
  await session.close();
  expect(await runSql(url, "SELECT id FROM plants")).toEqual([{ id: "1" }]);
});

test("a role with read-only transactions deletes nothing", async () => {
  const url = await server.createPlants([1n]);
  await runSql(url, "CREATE ROLE reads LOGIN SUPERUSER; ALTER ROLE reads SET default_transaction_read_only = on");
  const session = new Session(readServerUrl(url.replace("user=tester", "user=reads")));
  session.deadlineMs = performance.now() + 2_000;
  // Attempts are repeated until the deadline, at which the last attempt may still be connecting.
  const message = expect.stringMatching(/read-only transaction|connecting timed out/);
  await expect(runBatchWith(session, [pendingOf(1n)])).rejects.toMatchObject({ fault: { message } });
  await session.close();
  expect(await runSql(url, "SELECT id FROM plants")).toEqual([{ id: "1" }]);
});

test("a deletion that exceeds another client's short timeouts is deferred", async () => {
  const url = await server.createPlants([1n]);
  const sql = `CREATE FUNCTION linger() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(1); RETURN OLD; END $$;
     CREATE TRIGGER linger BEFORE DELETE ON plants FOR EACH ROW EXECUTE FUNCTION linger()`;
  await runSql(url, sql);
  const session = new Session(readServerUrl(url));
  await session.run("SET statement_timeout = 50; SET lock_timeout = 1");
  const aside: bigint[] = [];
  await runBatchWith(session, [pendingOf(1n)], { defer: ({ id }) => void aside.push(id) });
  expect(aside).toEqual([1n]);
  await session.close();
  expect(await runSql(url, "SELECT id FROM plants")).toEqual([{ id: "1" }]);
});

describe("a database and role with unusual parsing and formatting settings", () => {
  /** Returns the URL for a separate database and role, which both have settings. */
  async function createOdd(): Promise<string> {
    const base = await server.createSchema();
    const name = `odd_${randomUUID().replaceAll("-", "")}`;
    await runSql(base, `CREATE DATABASE ${name}`);
    const sql = `ALTER DATABASE ${name} SET standard_conforming_strings = off; ALTER DATABASE ${name} SET DateStyle = 'SQL, DMY';
       ALTER DATABASE ${name} SET TimeZone = 'Asia/Kolkata'; ALTER DATABASE ${name} SET array_nulls = off;
       ALTER DATABASE ${name} SET IntervalStyle = sql_standard; ALTER DATABASE ${name} SET quote_all_identifiers = on;
       CREATE ROLE ${name} LOGIN SUPERUSER; ALTER ROLE ${name} SET default_transaction_isolation = serializable;
       ALTER ROLE ${name} SET client_min_messages = error; ALTER ROLE ${name} SET row_security = off;
       ALTER ROLE ${name} SET synchronous_commit = off; ALTER ROLE ${name} SET session_replication_role = replica;
       ALTER ROLE ${name} SET extra_float_digits = 0; ALTER ROLE ${name} SET transform_null_equals = on`;
    await runSql(base, sql);
    const url = base.replace("/postgres?", `/${name}?`).replace(/&options=.*/, "");
    return url.replace("user=tester", `user=${name}`);
  }

  let url: string;
  beforeAll(async () => {
    url = await createOdd();
    await migratePostgres(url);
  });
  const openEmpty = async () => {
    await runSql(url, "TRUNCATE plants, deletions");
    return await openPostgresStore({ url });
  };

  describePlantStore(
    async (ids) => {
      const store = await openEmpty();
      await runSql(url, `INSERT INTO plants SELECT unnest('{${ids.join()}}'::bigint[])`);
      const reopen = () => openPostgresStore({ url });
      return { store, plants: () => readPlants(url), reopen, [Symbol.asyncDispose]: () => store.close() };
    },
    { lacks: factsOfOwnDatabase },
  );

  describePlantDatabase(async () => ({ store: await openEmpty(), database: await openPostgresDatabase(url) }));
});
