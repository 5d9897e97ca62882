import { setTimeout as sleep } from "node:timers/promises";
import { migratePostgres } from "../../../src/stores/postgres/all-plants/plant-database.ts";
import { createCertificate, createTempFolder, type Dice, freePort } from "@protoport/testing";
import { leftOnConnections } from "../../support/plants/left-on-connections.ts";
import { leaveOnConnections, startPooledDatabase } from "../../support/plants/pgbouncer.ts";
import { openClient, runSql } from "../../support/plants/postgres-server.ts";
import { startCitus } from "../citus/citus-cluster.ts";
import { readTables } from "../cluster/check-history.ts";
import { freeze, killAndStart, sleepUpTo, type StoreDatabase } from "./store-database.ts";

const clientBackends = "FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()";
/** In milliseconds, longer than the ten seconds after which a batch fails. */
const longFreezeMs = 15_000;
const neighborPlants = 300_000;

/** Opens an empty PostgreSQL behind PgBouncer, whose server connections the store shares with other programs. */
export async function openPostgresDatabase(dice: Dice): Promise<StoreDatabase> {
  let certificate = createCertificate("first");
  const port = await freePort();
  const database = await startPooledDatabase({ keeps: true, tls: { certificate, port } });
  const { postgres, pooler, direct, [Symbol.asyncDispose]: close } = database;
  const folder = createTempFolder();
  const authorities = folder.write("ca.pem", certificate.cert);
  /** Renews PgBouncer's certificate, while clients trust both the earlier and the next authority. */
  const rotate = async (): Promise<void> => {
    const next = createCertificate("next");
    folder.write("ca.pem", certificate.cert + next.cert);
    pooler.certify(next);
    await sleep(1_000);
    folder.write("ca.pem", next.cert);
    certificate = next;
    await killAndStart(pooler, dice);
  };
  const server = { kill: () => postgres.stop("kill"), start: () => postgres.start() };
  const statements = new Set(["plants", "deletions", "statement", "S_1"]);
  /** Prepares other statements with common names, and with names that the store has used. */
  const prepareOthers = async (): Promise<void> => {
    for (const { name } of await runSql(pooler.url, "SELECT name FROM pg_prepared_statements"))
      statements.add(String(name));
    const prepared = [...statements].map((name) => `PREPARE "${name}" AS SELECT 1`);
    await leaveOnConnections(pooler.url, `DEALLOCATE ALL; ${prepared.join("; ")}`);
  };
  const killBackend = async (): Promise<void> => {
    const [one] = await runSql(direct, `SELECT pid ${clientBackends} LIMIT 1`);
    if (one !== undefined) process.kill(Number(one["pid"]), "SIGKILL");
  };
  return {
    url: `postgres://tester@127.0.0.1:${port}/plantstore?sslmode=verify-full&sslrootcert=${authorities}`,
    directUrl: direct,
    prepare: () => prepareNeighbors(direct),
    faults: [
      { name: "PostgreSQL killed", inject: () => killAndStart(server, dice) },
      { name: "PostgreSQL frozen", inject: () => freeze(postgres, dice, longFreezeMs) },
      { name: "backend killed", inject: () => ignoreFailure(killBackend()) },
      {
        name: "backends terminated",
        inject: () => ignoreFailure(runSql(direct, `SELECT pg_terminate_backend(pid) ${clientBackends}`)),
      },
      { name: "PgBouncer killed", inject: () => killAndStart(pooler, dice) },
      { name: "PgBouncer frozen", inject: () => freeze(pooler, dice) },
      { name: "PgBouncer reloaded", inject: async () => pooler.signal("SIGHUP") },
      { name: "authority rotated", inject: rotate },
    ],
    signal: (name) => postgres.signal(name),
    disturb: async () => {
      const { sql } = dice.oneOf(leftOnConnections);
      await dice.oneOf([
        () => leaveOnConnections(pooler.url, sql),
        prepareOthers,
        () => holdOpen(pooler.url, "CREATE TEMP TABLE mine ON COMMIT DROP AS SELECT count(*) FROM public.plants", dice),
        () => holdOpen(pooler.url, "SELECT id FROM public.plants ORDER BY id LIMIT 5 FOR UPDATE", dice),
        () => holdOpen(direct, "SELECT id FROM public.plants ORDER BY id DESC LIMIT 500 FOR SHARE", dice),
      ])();
    },
    readTables: () => readTables((sql) => runSql(direct, sql)),
    countConnections: async () => {
      const clients = await runSql(pooler.url.replace("/plantstore?", "/pgbouncer?"), "SHOW CLIENTS");
      return clients.filter((client) => client["database"] === "plantstore").length;
    },
    [Symbol.asyncDispose]: async () => {
      folder[Symbol.dispose]();
      await close();
    },
  };
}

/** Creates the roles that `leftOnConnections` requires, and another store with the same plants. */
async function prepareNeighbors(direct: string): Promise<void> {
  await runSql(direct, "CREATE SCHEMA neighbor; CREATE ROLE neighbor; GRANT USAGE ON SCHEMA neighbor TO neighbor");
  await migratePostgres(`${direct}&options=-csearch_path%3Dneighbor`);
  await runSql(direct, `INSERT INTO neighbor.plants SELECT generate_series(1, ${neighborPlants})`);
  // This role sees no plant, unlike the owner.
  await runSql(direct, "CREATE ROLE gardener; GRANT ALL ON plants, deletions, plantstore_schema TO gardener");
  await runSql(direct, "ALTER TABLE plants ENABLE ROW LEVEL SECURITY");
}

export async function openCitusDatabase(dice: Dice): Promise<StoreDatabase> {
  const citus = await startCitus();
  const { coordinator, workers } = citus;
  const url = await citus.createSchema();
  const worker = (): (typeof workers)[number] => dice.oneOf(workers);
  return {
    url,
    directUrl: url,
    prepare: () => Promise.resolve(),
    faults: [
      { name: "worker killed", inject: () => killAndStart(worker(), dice) },
      { name: "worker frozen", inject: () => freeze(worker(), dice, longFreezeMs) },
      { name: "coordinator killed", inject: () => killAndStart(coordinator, dice) },
      { name: "coordinator frozen", inject: () => freeze(coordinator, dice) },
      {
        name: "backends terminated",
        inject: () => ignoreFailure(runSql(worker().url, `SELECT pg_terminate_backend(pid) ${clientBackends}`)),
      },
    ],
    signal: (name) => workers.forEach((each) => each.signal(name)),
    disturb: async () => {
      const [row] = await runSql(url, `SELECT ${dice.oneOf(["min", "max"])}(id) AS id FROM plants`);
      const lock = `SELECT id FROM plants WHERE id = ${Number(row?.["id"])} FOR UPDATE`;
      await holdOpen(url, dice.oneOf([lock, "SELECT count(*) FROM plants"]), dice);
    },
    readTables: () => readTables((sql) => runSql(url, sql)),
    countConnections: async () =>
      (
        await runSql(
          url,
          `SELECT pid ${clientBackends} AND datname = 'postgres'
      AND application_name NOT LIKE 'Citus%' AND application_name NOT LIKE 'citus%'`,
        )
      ).length,
    [Symbol.asyncDispose]: () => citus[Symbol.asyncDispose](),
  };
}

/** Runs SQL in a transaction that stays open for up to two seconds. */
async function holdOpen(url: string, sql: string, dice: Dice): Promise<void> {
  const client = await openClient(url, "BEGIN");
  try {
    await client.query(sql);
    await sleepUpTo(2_000, dice);
    await client.query("COMMIT");
  } finally {
    await client.end();
  }
}

// An operator's commands fail while another fault has stopped the database.
async function ignoreFailure(command: Promise<unknown>): Promise<void> {
  await command.catch(() => undefined);
  await sleep(500);
}
