import type { Socket } from "node:net";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { closing, createTempFolder } from "@protoport/testing/process";
import { openPostgresDatabase } from "../../../src/stores/postgres/all-plants/plant-database.ts";
import { openPostgresStore, watchIntervalMs } from "../../../src/stores/postgres/postgres-store.ts";
import { readServerUrl } from "../../../src/stores/postgres/server/server-url.ts";
import { readCommitted } from "../../../src/stores/postgres/server/pinned-settings.ts";
import { Session } from "../../../src/stores/postgres/server/session.ts";
// oxfmt-ignore
import { deleteApart, deleteCall, describePlantDatabase, describePlantStore, errorMessage, failAttempts, messageOf,
  openClient, openStoreWith, readPlants, readyForQuery, runSql, startPostgresOfFile, startPostgresProxy, testKilled
} from "../../support/plants/index.ts";
import { kindsOf, move, pathOf } from "../../support/plants/moved-stores.ts";
import { readSqlite } from "../../support/plants/sqlite-file.ts";

const server = await startPostgresOfFile();

describePlantStore((plants) => openStoreWith(server, plants));

describePlantDatabase(async () => {
  const url = await server.createPlants();
  return { store: await openPostgresStore({ url }), database: await openPostgresDatabase(url) };
});

describe("a store whose URL sets synchronous_commit to off", () => {
  testKilled((plants) =>
    openStoreWith(server, plants, (url) => url.replace("options=", "options=-csynchronous_commit%3Doff%20")),
  );
});

test("a deletion whose response is lost after its commit counts as deleted", async () => {
  let isLost = false;
  await using proxy = await startPostgresProxy(server.socketFolder, (client, upstream) => {
    let isSent = false;
    client.on("data", (data: Buffer) => {
      isSent ||= data.includes("WITH free AS");
      upstream.write(data);
    });
    upstream.on("data", (data: Buffer) => {
      if (!isSent || isLost) return void client.write(data);
      isLost = true;
      client.destroy();
    });
  });
  const change = (url: string): string => url.replace(server.socketFolder, proxy.socketFolder);
  await using opened = await openStoreWith(server, [1n], change);
  await expect(opened.store.delete(1n, deleteCall())).resolves.toBe(true);
  expect(isLost).toBe(true);
  expect(await opened.plants()).toEqual([]);
});

const completed = Buffer.concat([messageOf("C", "SELECT 0\0"), readyForQuery]);
const refusedWith = (fields: string): Buffer =>
  Buffer.concat([errorMessage(`SERROR\0VERROR\0C${fields}\0Mcanceled\0\0`), readyForQuery]);
const cancelled = refusedWith("57014");
const cancelledWithin = refusedWith("57014\0WPL/pgSQL function keep() line 1");

// A pooler may send an extra response after a cancellation, alone or together with the response to the statement. Each
// later response then belongs to the previous statement.
test.for([
  ["the deletion", "WITH free AS", readyForQuery, "alone"],
  ["the deletion", "WITH free AS", completed, "alone"],
  ["the deletion", "WITH free AS", cancelled, "alone"],
  ["the deletion", "WITH free AS", cancelledWithin, "alone"],
  ["the deletion", "WITH free AS", cancelledWithin, "together"],
  ["the deletion", "WITH free AS", refusedWith("55P03"), "alone"],
  ["the deletion", "WITH free AS", refusedWith("55P03"), "together"],
  ["the query for the reasons", "UNION ALL SELECT", readyForQuery, "alone"],
  ["the query for the reasons", "UNION ALL SELECT", completed, "alone"],
  ["the query for the reasons", "UNION ALL SELECT", cancelled, "alone"],
] as const)(
  "after an extra response to %s (%#), deletions have the right outcomes",
  async ([, text, extra, sending]) => {
    let isSent = false;
    await using proxy = await startPostgresProxy(server.socketFolder, (client, upstream) => {
      let held: Buffer = Buffer.alloc(0);
      client.on("data", (data: Buffer) => {
        if (!isSent && data.includes(text)) {
          isSent = true;
          if (sending === "alone") client.write(extra);
          else held = extra;
        }
        upstream.write(data);
      });
      upstream.on("data", (data: Buffer) => {
        client.write(Buffer.concat([held, data]));
        held = Buffer.alloc(0);
      });
    });
    const change = (url: string): string => url.replace(server.socketFolder, proxy.socketFolder);
    await using opened = await openStoreWith(server, [1n, 2n, 3n], change);
    const remove = (ids: readonly bigint[]) => Promise.all(ids.map((id) => opened.store.delete(id, deleteCall())));
    expect(await remove([1n, 2n, 9n])).toEqual([true, true, false]);
    expect(await remove([3n, 9n])).toEqual([true, false]);
    expect([isSent, await opened.plants()]).toEqual([true, []]);
  },
);

test.for(["BEGIN", "SELECT 7", "QCOMMIT"])("a transaction with an extra response to %s fails", async (text) => {
  await using proxy = await startPostgresProxy(server.socketFolder, (client, upstream) => {
    client.on("data", (data: Buffer) => {
      // Without the message's length, so that a COMMIT of its own differs from that of a script.
      if (`Q${data.toString("latin1", 5)}`.includes(text)) client.write(completed);
      upstream.write(data);
    });
    upstream.pipe(client);
  });
  const url = await server.createSchema();
  await using session = closing(new Session(readServerUrl(url.replace(server.socketFolder, proxy.socketFolder))));
  const running = session.transact(readCommitted, () => session.run("SELECT 7"));
  await expect(running).rejects.toThrow("the response to another statement");
  await expect(session.query("SELECT 1")).resolves.toEqual([["1"]]);
});

test("a refused store and an export that stops early leave no connection open", async () => {
  const [url, used] = await Promise.all([server.createSchema(), server.createPlants([1n])]);
  await expect(openPostgresStore({ url: `${url}&application_name=left` })).rejects.toThrow("cannot use");
  for await (const _ of (await openPostgresDatabase(`${used}&application_name=left`)).exportPlants()) break;
  const open = "SELECT FROM pg_stat_activity WHERE application_name = 'left'";
  await expect.poll(() => runSql(url, open)).toEqual([]);
});

test("extra responses to idle connections leave no connection open", async () => {
  const clients: Socket[] = [];
  await using proxy = await startPostgresProxy(server.socketFolder, (client, upstream) => {
    clients.push(client);
    client.pipe(upstream).pipe(client);
  });
  const change = (url: string): string => url.replace(server.socketFolder, proxy.socketFolder);
  await using opened = await openStoreWith(server, [1n, 2n, 3n], change);
  for (const id of [1n, 2n, 3n]) {
    await expect(opened.store.delete(id, deleteCall())).resolves.toBe(true);
    for (const client of clients) client.write(completed);
    await expect.poll(() => clients.every(({ closed }) => closed)).toBe(true);
  }
  expect(clients.length).toBeGreaterThan(3);
});

test("an import with an extra response keeps a concurrent deletion", async () => {
  let queries = 0;
  await using proxy = await startPostgresProxy(server.socketFolder, (client, upstream) => {
    client.on("data", (data: Buffer) => {
      if (data.includes("AS line (id)") && ++queries === 2) client.write(completed);
      upstream.write(data);
    });
    upstream.pipe(client);
  });
  const url = await server.createPlants([7n]);
  const database = await openPostgresDatabase(url.replace(server.socketFolder, proxy.socketFolder));
  const plantImport = await database.startImport();
  onTestFinished(() => plantImport[Symbol.asyncDispose]());
  const record = "INSERT INTO deletions (plant_id, subject, request_id, batch) VALUES (7, '', '', gen_random_uuid())";
  const other = await openClient(url, `BEGIN; DELETE FROM plants WHERE id = 7; ${record}`);
  const adding = expect(plantImport.add([7n])).rejects.toThrow("the response to another statement");
  const waiting = "SELECT FROM pg_locks WHERE locktype = 'transactionid' AND NOT granted";
  await expect.poll(() => runSql(url, waiting)).toHaveLength(1);
  await other.query("COMMIT");
  await adding;
  expect([queries, await runSql(url, "SELECT FROM plants")]).toEqual([2, []]);
  await other.end();
});

test("a deletion that a read-only server refuses succeeds on the next connection", async () => {
  const refusal = errorMessage("SERROR\0VERROR\0C25006\0Mcannot execute DELETE in a read-only transaction\0\0");
  /** The connections with a deletion. The first one refuses all deletions, as after a failover. */
  const connections = new Set<unknown>();
  await using proxy = await startPostgresProxy(server.socketFolder, (client, upstream) => {
    client.on("data", (data: Buffer) => {
      if (data.includes("DELETE FROM") && connections.add(client).size === 1)
        client.write(Buffer.concat([refusal, readyForQuery]));
      else upstream.write(data);
    });
    upstream.pipe(client);
  });
  const through = (url: string): string => url.replace(server.socketFolder, proxy.socketFolder);
  await using opened = await openStoreWith(server, [1n], through);
  await expect(opened.store.delete(1n, deleteCall())).resolves.toBe(true);
});

test("a session stays usable after a commit that its standbys did not confirm", async () => {
  const unconfirmed = messageOf("N", "SWARNING\0VWARNING\0C01000\0Mm\0RSyncRepWaitForLSN\0\0");
  await using proxy = await startPostgresProxy(server.socketFolder, (client, upstream) => {
    client.on("data", (data: Buffer) => {
      if (data.includes("COMMIT")) client.write(unconfirmed);
      upstream.write(data);
    });
    upstream.pipe(client);
  });
  const url = await server.createSchema();
  await using session = closing(new Session(readServerUrl(url.replace(server.socketFolder, proxy.socketFolder))));
  await expect(session.run("BEGIN; COMMIT")).rejects.toThrow("not confirmed by its synchronous standbys");
  await expect(session.query("SELECT 1")).resolves.toEqual([["1"]]);
});

test("a store reports a problem when its connection breaks during a split", async () => {
  // Once a connection is broken, checks fail too. A check that succeeds would clear the problem.
  let isBroken = false;
  await using proxy = await startPostgresProxy(server.socketFolder, (client, upstream) => {
    client.on("data", (data: Buffer) => {
      isBroken ||= data.includes("WHERE id = 1 FOR UPDATE");
      if (isBroken) client.destroy();
      else upstream.write(data);
    });
    upstream.pipe(client);
  });
  const change = (url: string): string => url.replace(server.socketFolder, proxy.socketFolder);
  await using opened = await openStoreWith(server, [1n, 2n], change);
  // The outcome of the first attempt is unknown. The next attempt is refused, and so is its first half.
  await failAttempts(opened.url, "DELETE ON plants", ["40003", "P0001", "P0001"], 1n);
  // While the deletions of two missing plants are in flight, the others become one batch.
  const [, , ...outcomes] = await Promise.allSettled(
    await deleteApart([8n, 9n, 1n, 2n], 2, (id) => opened.store.delete(id, deleteCall())),
  );
  const unknown = { status: "rejected", reason: expect.objectContaining({ errorCode: "ERR_OUTCOME_UNKNOWN" }) };
  expect(outcomes).toEqual([unknown, unknown]);
  expect(opened.store.problem).toBeDefined();
});

test("a store's check writes only if no plant was deleted recently", async () => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  onTestFinished(() => void vi.useRealTimers());
  const seen = { checks: 0, writes: 0 };
  await using proxy = await startPostgresProxy(server.socketFolder, (client, upstream) => {
    client.on("data", (data: Buffer) => {
      if (data.includes("server_encoding")) seen.checks++;
      if (data.includes("SAVEPOINT probe")) seen.writes++;
      upstream.write(data);
    });
    upstream.pipe(client);
  });
  const change = (url: string): string => url.replace(server.socketFolder, proxy.socketFolder);
  await using opened = await openStoreWith(server, [1n], change);
  const countWrites = async (): Promise<number> => {
    const before = { ...seen };
    vi.advanceTimersByTime(watchIntervalMs);
    await expect.poll(() => seen.checks, { interval: 5 }).toBe(before.checks + 1);
    await expect.poll(() => opened.store.connections?.used, { interval: 5 }).toBe(0);
    return seen.writes - before.writes;
  };
  expect(await countWrites()).toBe(1);
  // While the deletions of two missing plants are in flight, the others become one batch.
  await Promise.all([8n, 9n, 1n, 7n].map((id) => opened.store.delete(id, deleteCall())));
  expect(await countWrites()).toBe(0);
});

test("onBatch gets the calls of each batch, and the error of one that fails", async () => {
  await using opened = await openStoreWith(server, [1n, 2n, 3n]);
  const events: unknown[] = [];
  const onBatch = (calls: readonly unknown[]) => {
    events.push(calls);
    return (error?: unknown) => void events.push(error);
  };
  await using store = closing(await opened.reopen({ onBatch }));
  const [first, second, third] = [deleteCall(), deleteCall(), deleteCall()];
  await Promise.all([store.delete(1n, first), store.delete(2n, second)]);
  await opened.database.failDeletions();
  await store.delete(3n, third).catch(() => undefined);
  expect(events).toEqual([[first, second], undefined, [third], expect.any(Error)]);
});

const changingSql = `CREATE FUNCTION change() RETURNS trigger LANGUAGE plpgsql AS
     $$ BEGIN UPDATE plants SET id = OLD.id WHERE id = OLD.id; RETURN OLD; END $$;
   CREATE TRIGGER change BEFORE DELETE ON plants FOR EACH ROW WHEN (OLD.id = 2) EXECUTE FUNCTION change()`;

/** 1,000 different characters with three bytes each, which PostgreSQL cannot compress. */
const longSubject = Array.from({ length: 1_000 }, (_, i) => String.fromCharCode(0x4e00 + ((i * 7_919) % 20_000))).join(
  "",
);

test.each([
  { name: "whose trigger changes its row", sql: changingSql, subject: "" },
  { name: "whose subject is too long for an index", sql: "CREATE INDEX ON deletions (subject)", subject: longSubject },
])("a batch deletes all but a plant $name", async ({ sql, subject }) => {
  await using opened = await openStoreWith(server, [1n, 2n, 3n]);
  await runSql(opened.url, sql);
  const calls = [1n, 2n, 3n].map((id) => opened.store.delete(id, deleteCall(id === 2n ? { subject } : {})));
  const unavailable = expect.objectContaining({ errorCode: "ERR_STORE_UNAVAILABLE" });
  expect(await Promise.all(calls.map((call) => call.catch((fault: unknown) => fault)))).toEqual([
    true,
    unavailable,
    true,
  ]);
  expect(await opened.plants()).toEqual([2n]);
});

test("a store that is opened while its server is unreachable reports no waiting deletions", async () => {
  const store = await openPostgresStore({ url: "postgres://127.0.0.1:1/plants" });
  onTestFinished(() => store.close());
  expect(store.problem).toBe("127.0.0.1:1/plants: connect ECONNREFUSED 127.0.0.1:1");
  expect(store.waiting).toEqual({ forBatch: 0, maxForBatch: 16_384, forLock: 0 });
});

test("a move to PostgreSQL and back keeps the records, their keys and their batch numbers", async () => {
  using folder = createTempFolder();
  const { sqlite, postgres } = kindsOf(folder, server);
  const [first, second, third] = [await sqlite.create(), await postgres.create(), await sqlite.create()];
  const numbers =
    "WITH RECURSIVE numbers (value) AS (VALUES (1) UNION ALL SELECT value + 1 FROM numbers WHERE value < 17)";
  await sqlite.run(
    first,
    `INSERT INTO plants VALUES (7); ${numbers}
     INSERT INTO deletions SELECT value, value, 1001 * value, 'ann', 'r-' || value, value FROM numbers;
     INSERT INTO idempotency_keys VALUES ('key', 2, 2002)`,
  );
  const counts = { plants: 1, records: 17, keys: 1 };
  expect([await move(first, second), await move(second, third)]).toEqual([counts, counts]);
  for (const table of ["deletions", "idempotency_keys"]) {
    const [before, after] = [first, third].map((store) => readSqlite(pathOf(store), `SELECT * FROM ${table}`));
    expect(after).toEqual(before);
  }
});

test.each([
  { name: "only new plants", present: [], statement: "%WITH added AS (INSERT%" },
  { name: "an existing plant", present: [3n], statement: "%WITH added AS (INSERT%" },
])("an import with $name does not add a plant whose deletion commits meanwhile", async ({ present, statement }) => {
  const url = await server.createPlants([1n, 3n]);
  await using database = await openPostgresDatabase(url);
  await using running = await database.startImport();
  await running.add(present);
  const sql = `BEGIN; DELETE FROM plants WHERE id = 1;
     INSERT INTO deletions (plant_id, subject, request_id, batch) VALUES (1, '', '', gen_random_uuid())`;
  const deletion = await openClient(url, sql);
  // Ends before the import, which waits for the lock of the deletion.
  await using _ = { [Symbol.asyncDispose]: () => deletion.end() };
  const adding = running.add([1n, 2n]);
  // Handles a rejection while the test still waits for the lock.
  adding.catch(() => undefined);
  const waiting = `SELECT FROM pg_stat_activity WHERE query LIKE '${statement}' AND wait_event_type = 'Lock'`;
  await expect.poll(() => runSql(url, waiting), { interval: 5 }).not.toEqual([]);
  await deletion.query("COMMIT");
  await expect(adding).resolves.toEqual({ added: 1, present: 0, deleted: 1 });
  expect(await readPlants(url)).toEqual([2n, 3n]);
});
