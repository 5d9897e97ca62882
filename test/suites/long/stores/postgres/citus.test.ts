import { Client } from "pg";
import { expect, test, vi } from "vitest";
import { citusPlacement } from "../../../../../src/stores/citus/citus-placement.ts";
import { CitusWorkers } from "../../../../../src/stores/citus/workers.ts";
import { Shards } from "../../../../../src/stores/citus/shards.ts";
import { readServerUrl } from "../../../../../src/stores/postgres/server/server-url.ts";
import { Session } from "../../../../../src/stores/postgres/server/session.ts";
import { type CuttingProxy, startCuttingProxy } from "../../../../support/plants/cutting-proxy.ts";
import { configOf, openClient, runSql } from "../../../../support/plants/postgres-server.ts";
import { schemaOf } from "../../../../support/plants/schema-of.ts";
import { startPostgresOfFile } from "../../../../support/plants/postgres-of-file.ts";

// Tests that need no worker. test/suites/citus has the tests with workers.

const server = await startPostgresOfFile();

const hashMax = 2 ** 31 - 1;

/** Returns the workers for a store whose tables are distributed. */
function usedWorkers(): CitusWorkers {
  return Object.assign(new CitusWorkers(), { areUsed: true });
}

/** Creates a schema in which statements for all workers run on this server. */
async function createSchemaWith(onWorkers: string): Promise<string> {
  const url = await server.createSchema();
  await runSql(
    url,
    `CREATE TABLE asked (command text);
     CREATE OR REPLACE FUNCTION pg_catalog.citus_backend_gpid() RETURNS bigint LANGUAGE sql AS 'SELECT 0::bigint';
     CREATE OR REPLACE FUNCTION pg_catalog.citus_nodeid_for_gpid(bigint) RETURNS integer LANGUAGE sql AS 'SELECT 0';
     CREATE OR REPLACE FUNCTION pg_catalog.citus_calculate_gpid(integer, integer) RETURNS integer LANGUAGE sql AS 'SELECT $2';
     CREATE OR REPLACE FUNCTION pg_catalog.run_command_on_workers(text) RETURNS SETOF text LANGUAGE sql AS $$ ${onWorkers} $$`,
  );
  return url;
}

/** Connects a client whose waits on workers a store may cancel. */
async function connectStore(url: string): Promise<Client> {
  const client = new Client({ ...configOf(url), application_name: "plantstore" });
  await client.connect();
  return client;
}

test("a timeout while cancelling standby waits delays only one connection", async () => {
  const url = await createSchemaWith("SELECT pg_sleep(600)::text");
  const workers = usedWorkers();
  const stuck = await connectStore(url);
  workers.addPossibleWait(stuck.processID);
  const first = new Session(readServerUrl(url), undefined, workers);
  first.deadlineMs = performance.now() + 1_500;
  await expect(first.connect()).rejects.toThrow("connecting timed out");
  const second = new Session(readServerUrl(url), undefined, workers);
  const requested = vi.spyOn(second, "query");
  await second.connect();
  expect(requested).not.toHaveBeenCalled();
  await Promise.all([first.close(), second.close(), stuck.end()]);
});

test("only the last hundred processes' standby waits are cancelled", async () => {
  const url = await createSchemaWith("INSERT INTO asked VALUES ($1) RETURNING command");
  const workers = usedWorkers();
  const [forgotten, oldest] = [await connectStore(url), await connectStore(url)];
  workers.addPossibleWait(forgotten.processID);
  workers.addPossibleWait(oldest.processID);
  for (let i = 0; i < 99; i++) workers.addPossibleWait(-1 - i);
  const session = new Session(readServerUrl(url), undefined, workers);
  await session.connect();
  const requested = await runSql(url, "SELECT substring(command FROM 'gpid=(\\d+)') AS process FROM asked");
  expect(requested).toEqual([{ process: String(oldest.processID) }]);
  await Promise.all([session.close(), forgotten.end(), oldest.end()]);
});

test("standby waits are cancelled with pg_catalog's functions for any search_path", async () => {
  const url = await createSchemaWith("INSERT INTO asked VALUES ($1) RETURNING command");
  const workers = usedWorkers();
  const waiting = await connectStore(url);
  workers.addPossibleWait(waiting.processID);
  const session = new Session(readServerUrl(url), undefined, workers);
  await session.connect();
  const [row] = await runSql(url, "SELECT command, current_schema() AS schema FROM asked");
  await runSql(
    url,
    `CREATE VIEW pg_stat_activity AS
       SELECT 0 AS pid, 'SyncRep' AS wait_event, 'citus_internal gpid=${waiting.processID}' AS application_name;
     CREATE FUNCTION pg_cancel_backend(integer) RETURNS boolean LANGUAGE sql AS 'SELECT true'`,
  );
  const worker = await openClient(url, `SET search_path = ${String(row?.["schema"])}, pg_catalog`);
  expect((await worker.query(String(row?.["command"]))).rows).toEqual([]);
  await Promise.all([session.close(), waiting.end(), worker.end()]);
});

test.each([
  { name: "times out", responseTimeoutMs: 200, expected: { code: "57014" } },
  {
    name: "times out on a server that does not respond",
    responseTimeoutMs: 200,
    disconnect: (proxy: CuttingProxy) => proxy.freeze(),
    expected: { message: expect.stringMatching(/^the server does not respond/) },
  },
  {
    name: "loses its connection",
    responseTimeoutMs: 60_000,
    disconnect: ({ sockets }: CuttingProxy) => sockets.forEach((socket) => socket.destroy()),
    expected: {},
  },
])(
  "a statement that $name marks its server process as possibly waiting",
  async ({ responseTimeoutMs, disconnect, expected }) => {
    const url = await server.createSchema();
    await using proxy = await startCuttingProxy(server.socketFolder);
    const workers = usedWorkers();
    const noted = vi.spyOn(workers, "addPossibleWait");
    const through = readServerUrl(url.replace(server.socketFolder, proxy.socketFolder));
    const session = new Session(through, { lockTimeoutMs: 0, statementTimeoutMs: 0, responseTimeoutMs }, workers);
    await session.query("SELECT 1");
    await expect(session.query("SELECT 1 / 0")).rejects.toMatchObject({ code: "22012" });
    const { processId } = session;
    const rejected = expect(session.query("SELECT pg_sleep(60)")).rejects.toMatchObject(expected);
    disconnect?.(proxy);
    await rejected;
    expect(noted.mock.calls).toEqual([[processId]]);
    await session.close();
  },
);

test("findPlants looks up existing plants in one statement", async () => {
  const url = await server.createPlants([1n]);
  const session = new Session(readServerUrl(url));
  const requested = vi.spyOn(session, "queryInTransaction");
  const placement = citusPlacement(schemaOf(session), new Shards([hashMax], [0]));
  expect(await placement.findPlants(session, [1n, 2n])).toEqual([1n]);
  expect(requested).toHaveBeenCalledTimes(1);
  await session.close();
});

test("each transaction restores worker settings that another client changed", async () => {
  const name = "citus.worker_min_messages";
  const url = await server.createSchema();
  const session = new Session(readServerUrl(url), undefined, new CitusWorkers());
  const show = `SELECT pg_catalog.current_setting('${name}', true)`;
  await expect(session.query(show)).resolves.toEqual([["debug1"]]);
  await session.run(`SET ${name} = notice`);
  await expect(session.query(show)).resolves.toEqual([["notice"]]);
  await expect(session.queryInTransaction(show, [])).resolves.toEqual([["debug1"]]);
  const other = new Session(readServerUrl(url));
  await expect(other.queryInTransaction(show, [])).resolves.toEqual([[null]]);
  await Promise.all([session.close(), other.close()]);
});
