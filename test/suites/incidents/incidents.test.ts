import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Prometheus, startPrometheus } from "../../../protoport/testing/src/telemetry/prometheus.ts";
import { blocksRunBy } from "../../support/docs/page-blocks.ts";
import { openClient } from "../../support/plants/postgres-server.ts";
import { openProduction, type Production, productionBlocks } from "../prometheus/production.ts";

// Breaks a server under load, waits for the alert, runs its runbook's commands, and follows the runbook's advice for
// their output. The server must serve calls again, without a lost deletion.

const blocks = Map.groupBy(blocksRunBy("test/suites/prometheus/runbooks.test.ts"), ({ section }) => section);
const continueWithoutStandby = blocksRunBy("test/suites/prometheus/failover.test.ts").find(({ text }) =>
  text.includes("synchronous_standby_names = ''"),
);
const [createDatabase, writeSettings, createTables, createToken, start = ""] = productionBlocks();
/** Makes alerts fire after a second instead of minutes, with shorter ranges in their expressions. */
const withShortTimes = (rules: string): string => rules.replaceAll(/for: \d+m/g, "for: 1s").replaceAll("5m", "10s");

/** Deletes one plant after the other, and writes the acknowledged ids to a file. */
const load = `touch acknowledged
( for ID in $(seq 1000000); do
  STATUS=$(curl --silent --max-time 15 --output /dev/null --write-out '%{http_code}' -X DELETE \\
    -H "Authorization: Bearer $TOKEN" "https://plants.example:8443/plants/$ID") || true
  if [ "$STATUS" = 204 ]; then echo "$ID" >> acknowledged; fi
  sleep 0.05
done ) &`;

interface Incident {
  readonly name: string;
  readonly alert: string;
  readonly begin: (production: Production) => Promise<unknown>;
  /** What the runbook's first commands print. */
  readonly prints: RegExp;
  /** The section to which the runbook leads, and what its first commands print. */
  readonly leadsTo?: { readonly alert: string; readonly prints: RegExp };
  readonly repair: (production: Production) => Promise<unknown>;
}

const runAs =
  (...statements: readonly string[]) =>
  ({ run }: Production) =>
    run(`psql --dbname=plants --quiet ${statements.map((sql) => `-c "${sql}"`).join(" ")}`);

/** Opens another program's transaction, which stays open. */
const holdTransaction = (sql: string) => async (production: Production) => {
  const port = (await production.read("echo $PGPORT")).trim();
  const url = `postgres:///plants?user=tester&host=${production.postgres.socketFolder}&port=${port}`;
  (await openClient(url, `BEGIN; ${sql}`)).on("error", () => {});
};

/** Runs a section's last commands until its condition "for a minute" applies. */
const endIdleTransactions = async ({ read }: Production): Promise<void> => {
  const end = blocks.get("PlantstoreSlow")?.[1]?.text;
  await expect.poll(() => read(end), { timeout: 90_000, interval: 2_000 }).toContain("(1 row)");
};

const idle = /\| tester +\| idle in transaction \| Client +\| ClientRead /;
/** Skips the check. */
const startAgain = start.split("\n").slice(1).join("\n");
const stop = 'kill -TERM "$PID"\nwait "$PID" || true';

// oxfmt-ignore
const onPostgres: readonly Incident[] = [
  { name: "the process of the server is killed", alert: "PlantstoreDown",
    begin: ({ run }) => run('kill -KILL "$PID"\nwait "$PID" || true'),
    prints: /"msg":"call"[^]*no running server responds at [^]*the configuration is valid/,
    repair: ({ run }) => run(startAgain) },
  { name: "PostgreSQL is stopped", alert: "PlantstoreNotReady", begin: ({ postgres }) => postgres.stop("immediate"),
    prints:
      /"obstacles":\["store"\][^]*"problem":"[^"]*ECONNREFUSED[^]*is not ready: store: [^]*cannot use [^]*ECONNREFUSED/,
    repair: ({ postgres }) => postgres.start() },
  { name: "the database is made read-only", alert: "PlantstoreNotReady", begin: runAs(
      "ALTER DATABASE plants SET default_transaction_read_only = on",
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'plantstore'",
    ), prints: /the server is read-only: default_transaction_read_only is set by ALTER DATABASE/, repair: runAs(
      "SET default_transaction_read_only = off",
      "ALTER DATABASE plants RESET default_transaction_read_only",
    ) },
  { name: "the role of the server loses a privilege", alert: "PlantstoreNotReady",
    begin: runAs("REVOKE INSERT ON deletions FROM plantstore"),
    prints: /"problem":"[^"]*(?:permission denied|privileges)[^]*the user lacks privileges: INSERT on deletions/,
    repair: runAs("GRANT INSERT ON deletions TO plantstore") },
  { name: "row security hides the plants from the server", alert: "PlantstoreNotReady",
    begin: runAs("ALTER TABLE plants ENABLE ROW LEVEL SECURITY", "ALTER TABLE plants FORCE ROW LEVEL SECURITY"),
    prints: /"problem":[^]*row security may hide rows of the table plants/,
    repair: runAs("ALTER TABLE plants NO FORCE ROW LEVEL SECURITY", "ALTER TABLE plants DISABLE ROW LEVEL SECURITY") },
  { name: "the synchronous standby is gone", alert: "PlantstoreNotReady",
    begin: runAs("ALTER SYSTEM SET synchronous_standby_names = 'lost'", "SELECT pg_reload_conf()"),
    prints: /"problem":"[^"]*(?:standbys|may not respond|was cancelled)[^]*standbys/,
    repair: ({ run }) => run(`STANDBY="dbname=plants"\n${continueWithoutStandby?.text}`) },
  {
    name: "a trigger fails",
    alert: "PlantstoreErrors",
    begin: runAs(
      `CREATE FUNCTION broken() RETURNS trigger LANGUAGE plpgsql AS
       'BEGIN INSERT INTO nowhere VALUES (1); RETURN OLD; END'`,
      "CREATE TRIGGER broken BEFORE DELETE ON plants FOR EACH ROW EXECUTE FUNCTION broken()",
    ),
    prints: /"problem":"relation \\"nowhere\\" does not exist"/,
    repair: runAs("DROP TRIGGER broken ON plants"),
  },
  {
    name: "a trigger refuses every deletion",
    alert: "PlantstoreDeletionsProtected",
    begin: runAs(
      `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
       'BEGIN RAISE EXCEPTION ''plants are frozen''; END'`,
      "CREATE TRIGGER refuse BEFORE DELETE ON plants FOR EACH ROW EXECUTE FUNCTION refuse()",
    ),
    prints: /"problem":"plants are frozen"/,
    repair: runAs("DROP TRIGGER refuse ON plants"),
  },
  { name: "the file of tokens is empty", alert: "PlantstoreCredentialsRefused",
    begin: ({ run }) => run("cp tokens kept\n: > tokens"), prints: /\d "refusal":"invalid"/,
    repair: ({ run }) => run("cp kept tokens") },
  { name: "another program locks all plants and does nothing", alert: "PlantstoreErrors",
    begin: holdTransaction("SELECT FROM plants FOR UPDATE"),
    prints: /"problem":"another transaction holds a lock on the plant[^]*plantstore_wait_reason="lock"\} 1/,
    leadsTo: { alert: "PlantstoreSlow", prints: idle }, repair: endIdleTransactions },
  { name: "another program locks the table and does nothing", alert: "PlantstoreSlow",
    begin: holdTransaction("LOCK TABLE plants IN ACCESS EXCLUSIVE MODE"), prints: idle, repair: endIdleTransactions },
];

const holdLock = `node -e '
  const db = new (require("node:sqlite").DatabaseSync)("plants.db");
  db.exec("BEGIN IMMEDIATE");
  setInterval(() => {}, 1000);' &
OTHER=$!`;

// oxfmt-ignore
const onSqlite: readonly Incident[] = [
  { name: "another program holds the lock on the file", alert: "PlantstoreNotReady", begin: ({ run }) => run(holdLock),
    prints: /"problem":"[^"]*another process holds the lock on the file[^]*another process holds the lock/,
    repair: async ({ run, read }) => {
      expect(await read("fuser -v plants.db")).toContain((await read("echo $OTHER")).trim());
      await run('kill "$OTHER"\nwait "$OTHER" || true');
    } },
  { name: "the file is moved", alert: "PlantstoreNotReady", begin: ({ run }) => run("mv plants.db lost.db"),
    prints: /"problem":"[^"]*the file was moved, replaced or deleted[^]*file not found/,
    repair: ({ run }) => run(`mv lost.db plants.db\n${stop}\nplantstore check\n${startAgain}`) },
  { name: "the file gets a second name", alert: "PlantstoreSecondName",
    begin: ({ run }) => run("ln plants.db backup.db"), prints: /the file has 2 names/,
    repair: ({ run }) => run("rm backup.db") },
  { name: "the write-ahead log is truncated", alert: "PlantstoreNotReady",
    begin: ({ run }) => run("truncate --size=0 plants.db-wal"),
    prints: /"problem":"[^"]*its write-ahead log was truncated/, repair: async ({ run }) => {
      await run(`${stop}\nplantstore check\n${startAgain}`);
      for (const { text } of blocks.get("Repeat undone deletions") ?? []) await run(text);
    } },
];

describe.each([
  { store: "PostgreSQL", incidents: onPostgres, more: undefined },
  { store: "SQLite", incidents: onSqlite, more: "export DATABASE_URL=sqlite:plants.db" },
])("an alert's runbook for $store", ({ incidents, more }) => {
  let production: Production;
  let prometheus: Prometheus;
  const names = async () => (await prometheus.firing()).map(({ labels }) => labels["alertname"]);
  /** Runs a section's first commands. An operator continues after one that fails. */
  const readFirst = (alert: string) => production.read(`set +e\n${blocks.get(alert)?.[0]?.text}\nset -e`);

  beforeAll(async () => {
    production = await openProduction();
    const { run, read } = production;
    for (const block of [createDatabase, writeSettings]) await run(block);
    if (more !== undefined) await run(more);
    await run(createTables);
    await run("seq 1001 20000 | plantstore import -");
    for (const block of [createToken, start, load]) await run(block);
    prometheus = await startPrometheus([(await read("printf 127.0.0.1:9464")).trim()], withShortTimes);
  }, 120_000);
  afterAll(async () => {
    await prometheus[Symbol.asyncDispose]();
    await production[Symbol.asyncDispose]();
  });

  test.for(incidents)(
    "when $name, leads to the cause and the repair",
    { timeout: 240_000 },
    async ({ alert, begin, prints, leadsTo, repair }, { annotate }) => {
      await expect.poll(names, { timeout: 60_000 }).toEqual([]);
      const beginMs = performance.now();
      await begin(production);
      await expect.poll(names, { timeout: 60_000 }).toContain(alert);
      const printed = await readFirst(alert);
      const next = leadsTo && (await readFirst(leadsTo.alert));
      await repair(production);
      expect(printed).toMatch(prints);
      if (leadsTo !== undefined) expect(next).toMatch(leadsTo.prints);
      const { read } = production;
      await expect
        .poll(() => read("curl --silent https://plants.example:8443/readyz"), { timeout: 60_000 })
        .toContain('"status":"ready"');
      await annotate(`ready again after ${((performance.now() - beginMs) / 60_000).toFixed(1)} minutes`);
      const acknowledged = async (): Promise<number> => Number(await read("wc -l < acknowledged"));
      const before = await acknowledged();
      await expect.poll(acknowledged, { timeout: 30_000 }).toBeGreaterThan(before);
      // Prints the plants that exist although their deletion was acknowledged.
      expect(await read("sort acknowledged > sorted\nplantstore export | sort | comm -12 - sorted")).toBe("");
    },
  );
});
