import { describe, expect, test } from "vitest";
import { openPlantStore, type PlantLocation } from "../../../../../src/stores/index.ts";
// oxfmt-ignore
import { deleteCall, failAlways, openClient, runSql, startPostgres, startPostgresOfFile, startStandby, withoutStandby
} from "../../../../support/plants/index.ts";
import { startConfigured } from "../../../../support/server/start-configured.ts";
import { runCommand } from "../../../../support/process/run-command.ts";

const server = await startPostgresOfFile();

/** A store's state, what a server does in it, and what `check` reports. */
interface State {
  readonly name: string;
  /** Puts a store into the state. Returns the store's URL if the URL changes. */
  readonly enter: (url: string) => Promise<string | void>;
  readonly isReady: boolean;
  readonly words?: string;
}

const lockedBy = new Map<string, AsyncDisposable>();

async function lockTable(url: string, table: string): Promise<void> {
  const client = await openClient(url, `BEGIN; LOCK TABLE ${table} IN ACCESS EXCLUSIVE MODE`);
  lockedBy.set(url, { [Symbol.asyncDispose]: () => client.end() });
}

let clerks = 0;

/** Creates a role with a server's privileges, runs SQL for it, and returns the URL for it. */
async function asClerk(url: string, sqlFor: (role: string) => string): Promise<string> {
  const role = `clerk_${++clerks}`;
  const sql = `CREATE ROLE ${role} LOGIN;
     DO $$ BEGIN EXECUTE format('GRANT USAGE ON SCHEMA %I TO ${role}', current_schema()); END $$;
     GRANT SELECT, INSERT, UPDATE, DELETE ON plants, deletions TO ${role}; GRANT SELECT ON plantstore_schema TO ${role};
     ${sqlFor(role)}`;
  await runSql(url, sql);
  return url.replace("user=tester", `user=${role}`);
}

const readOnly = "default_transaction_read_only";

// oxfmt-ignore
const states: readonly State[] = [
  { name: "nothing is wrong", enter: async () => undefined, isReady: true },
  { name: "a role has only the privileges of a server", enter: (url) => asClerk(url, () => ""), isReady: true },
  { name: "a trigger protects all plants", enter: (url) => failAlways(url, "DELETE ON plants", "P0001"),
    isReady: true },
  { name: "the table plants is locked", enter: (url) => lockTable(url, "plants"), isReady: false,
    words: "another transaction holds a lock on a table" },
  { name: "the table deletions is locked", enter: (url) => lockTable(url, "deletions"), isReady: false,
    words: "another transaction holds a lock on a table" },
  { name: "each deletion is cut off", enter: (url) => failAlways(url, "INSERT ON deletions", "57P01"), isReady: false,
    words: ": no" },
  { name: "ALTER ROLE makes sessions read-only",
    enter: (url) => asClerk(url, (role) => `ALTER ROLE ${role} SET ${readOnly} = on`), isReady: false,
    words: `the server is read-only: ${readOnly} is set by ALTER ROLE` },
  { name: "the URL makes sessions read-only", enter: async (url) => `${url}%20-c${readOnly}%3Don`, isReady: false,
    words: `the server is read-only: ${readOnly} is set by the options of the database URL` },
  { name: "the role may not delete", enter: (url) => asClerk(url, (role) => `REVOKE DELETE ON plants FROM ${role}`),
    isReady: false, words: "the user lacks privileges: DELETE on plants" },
  { name: "the role may not record deletions",
    enter: (url) => asClerk(url, (role) => `REVOKE INSERT, UPDATE ON deletions FROM ${role}`), isReady: false,
    words: "the user lacks privileges: INSERT on deletions, UPDATE on deletions" },
  { name: "the role may not log in", enter: (url) => asClerk(url, (role) => `ALTER ROLE ${role} NOLOGIN`),
    isReady: false, words: '" is not permitted to log in' },
  { name: "the role may not connect", enter: (url) => asClerk(url, (role) => `ALTER ROLE ${role} CONNECTION LIMIT 0`),
    isReady: false, words: 'too many connections for role "clerk_' },
  { name: "row security may hide plants", enter: (url) =>
      asClerk(url, () => `ALTER TABLE plants ENABLE ROW LEVEL SECURITY; CREATE POLICY mine ON plants USING (true)`),
    isReady: false, words: "row security may hide rows of the table plants" },
  { name: "a rule keeps all plants",
    enter: async (url) => void (await runSql(url, "CREATE RULE keep AS ON DELETE TO plants DO INSTEAD NOTHING")),
    isReady: false, words: "rule" },
  { name: "a rule drops all records",
    enter: async (url) => void (await runSql(url, "CREATE RULE lose AS ON INSERT TO deletions DO INSTEAD NOTHING")),
    isReady: false, words: "rule" },
  { name: "the table plants is unlogged",
    enter: async (url) => void (await runSql(url, "ALTER TABLE plants SET UNLOGGED")), isReady: false,
    words: "the table plants is unlogged" },
  { name: "a table that inherits from plants is unlogged",
    enter: async (url) => void (await runSql(url, "CREATE UNLOGGED TABLE seedlings () INHERITS (plants)")),
    isReady: false, words: "the table seedlings is unlogged" },
  { name: "the schema is newer",
    enter: async (url) => void (await runSql(url, "UPDATE plantstore_schema SET version = 99, oldest_server = 98")),
    isReady: false, words: "its schema has version 99" },
  { name: "the schema version's table is missing",
    enter: async (url) => void (await runSql(url, "DROP TABLE plantstore_schema")), isReady: false,
    words: "it does not contain a plant store yet: only if this is a new store" },
  { name: "the table deletions is missing",
    enter: async (url) => void (await runSql(url, "DROP TABLE deletions CASCADE")), isReady: false,
    words: 'deletions" does not exist' },
  { name: "the search_path has no schema",
    enter: async (url) => url.replace(/search_path%3D\w+/, "search_path%3Dnowhere"), isReady: false,
    words: "search_path contains no schema that the user can use" },
  { name: "the database does not exist", enter: async (url) => url.replace("/postgres?", "/nowhere?"), isReady: false,
    words: 'database "nowhere" does not exist' },
  { name: "no server listens", enter: async (url) => url.replace("port=5432", "port=5433"), isReady: false,
    words: "ENOENT" },
];

/** Returns whether a server would be ready, which requires that its store opens and can delete. */
async function isServerReady(url: string): Promise<boolean> {
  const location: PlantLocation = { kind: "postgres", url };
  const store = await openPlantStore(location).catch(() => undefined);
  if (store === undefined) return false;
  // If the deletion fails because of the server, the store has a problem.
  await store.delete(77n, deleteCall()).catch(() => undefined);
  const isReady = store.problem === undefined;
  await store.close();
  return isReady;
}

const check = (url: string): ReturnType<typeof runCommand> => runCommand(["check"], { DATABASE_URL: url });
const valid = "the configuration is valid";
const noStandby = "has no synchronous standby (synchronous_standby_names is empty)";

describe("check", () => {
  test.each(states)("when $name, reports the same readiness as a server", async ({ enter, isReady, words = valid }) => {
    const created = await server.createPlants([1n]);
    const url = (await enter(created)) ?? created;
    await using _ = lockedBy.get(created);
    const before = await recordCount(created);
    const { exitCode, err } = await check(url);
    const text = err.join("\n");
    expect({ exitCode, text }).toEqual({ exitCode: isReady ? 0 : 1, text: expect.stringContaining(words) });
    expect(err.some((line) => line.includes(noStandby))).toBe(isReady);
    expect(await isServerReady(url)).toBe(isReady);
    expect(await recordCount(created)).toEqual(before);
  });

  test.each([
    ["ALTER SYSTEM", "ALTER SYSTEM SET", "ALTER SYSTEM RESET", "the configuration of the server"],
    ["ALTER DATABASE", "ALTER DATABASE postgres SET", "ALTER DATABASE postgres RESET", "ALTER DATABASE"],
  ])("reports %s if it makes sessions read-only", async (_name, set, reset, by) => {
    const url = await server.createPlants([1n]);
    await runSql(url, `${set} ${readOnly} = on`);
    await runSql(url, "SELECT pg_reload_conf()");
    const { exitCode, err } = await check(url);
    const isReady = await isServerReady(url);
    const admin = await openClient(url, `SET ${readOnly} = off`);
    await admin.query(`${reset} ${readOnly}`);
    await admin.query("SELECT pg_reload_conf()");
    await admin.end();
    const text = expect.stringContaining(`the server is read-only: ${readOnly} is set by ${by}`);
    expect({ exitCode, isReady, text: err.join("\n") }).toEqual({ exitCode: 1, isReady: false, text });
  });

  test("reports that the server is a standby", async () => {
    const url = await server.createPlants([1n]);
    await using standby = await startStandby(server, "standby");
    const replica = url.replace(server.socketFolder, standby.socketFolder);
    const { exitCode, err } = await check(replica);
    const want = { exitCode: 1, text: expect.stringContaining("the server is read-only: it is a standby") };
    expect({ exitCode, text: err.join("\n") }).toEqual(want);
    expect(await isServerReady(replica)).toBe(false);
    const [first, second] = [url, replica].map((other) => check(`${other}&target_session_attrs=primary`));
    expect(await first).toMatchObject({ exitCode: 0 });
    expect((await second)?.err.join("\n")).toContain("the server is a standby");
  });

  test("fails when the synchronous standby is missing", async () => {
    const url = await server.createPlants([1n]);
    const words = "not confirmed by its synchronous standbys";
    const { exitCode, err } = await withoutStandby(url, () => check(url));
    expect({ exitCode, text: err.join("\n") }).toEqual({ exitCode: 1, text: expect.stringContaining(words) });
  });

  test("agrees with a running server when both synchronous standbys stop", async () => {
    await using primary = await startPostgres();
    const url = await primary.createPlants([1n]);
    await using first = await startStandby(primary, "standby_a");
    await using second = await startStandby(primary, "standby_b");
    await runSql(url, "ALTER SYSTEM SET synchronous_standby_names = 'ANY 1 (standby_a, standby_b)'");
    await runSql(url, "SELECT pg_reload_conf()");
    await using running = await startConfigured({ DATABASE_URL: url, PLANTSTORE_ADMIN_ADDRESS: "0" });
    const environment = { DATABASE_URL: url, PLANTSTORE_ADMIN_ADDRESS: String(running.admin?.port) };
    const asked = async (): Promise<string> => (await runCommand(["check"], environment)).err.join("\n");
    expect(await asked()).toContain("reports no problem");
    await Promise.all([first.stop("immediate"), second.stop("immediate")]);
    const words = "not confirmed by its synchronous standbys";
    // Both the server and the check report the missing standby.
    const options = { timeout: 30_000 };
    await expect.poll(asked, options).toMatch(new RegExp(`is not ready: store: .*${words}[^]*cannot use .*${words}`));
    await first.start();
    await expect.poll(asked, { timeout: 30_000 }).toContain("reports no problem");
  });

  test("passes when a lock is released within a second", async () => {
    const url = await server.createPlants([1n]);
    const client = await openClient(url, "BEGIN; LOCK TABLE plants IN ACCESS EXCLUSIVE MODE");
    const checking = check(url);
    const waiting = "SELECT FROM pg_locks WHERE relation = 'plants'::regclass AND NOT granted";
    await expect.poll(() => runSql(url, waiting), { interval: 5 }).not.toEqual([]);
    await client.end();
    expect((await checking).exitCode).toBe(0);
  });
});

/** Returns how many deletion records there are, or `undefined` without a table. */
async function recordCount(url: string): Promise<unknown> {
  if (lockedBy.has(url)) return undefined;
  return await runSql(url, "SELECT count(*) FROM deletions").catch(() => undefined);
}
