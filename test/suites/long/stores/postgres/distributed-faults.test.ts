import type { Socket } from "node:net";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { shared } from "../../../../../protoport/testing/src/shared.ts";
import { migratePostgres, openPostgresDatabase } from "../../../../../src/stores/postgres/all-plants/plant-database.ts";
import { openPostgresStore } from "../../../../../src/stores/postgres/postgres-store.ts";
import type { DeleteCall } from "../../../../../src/service/plant-store.ts";
import { collect, Dice, testSeed } from "@protoport/testing/process";
// oxfmt-ignore
import { createSchemaOfVersion, deleteCall, laterSteps, latestVersion, type PostgresProxy, runSql,
  startPostgres, startPostgresProxy } from "../../../../support/plants/index.ts";

/** A proxy in front of a PostgreSQL server that simulates the limits and errors of distributed engines. */
interface DistributedProxy extends PostgresProxy {
  /** How many statements were refused, by SQLSTATE. */
  readonly refused: ReadonlyMap<string, number>;
  /** One statement in this many fails at random. With 0, the default, no statement fails. */
  failOneIn: number;
  /** Whether the outcome of a commit may be lost. */
  losesOutcomes: boolean;
}

// Features that CockroachDB or YugabyteDB lack, at least in some releases, or do not document.
const lacking = /\bTEMP(?:ORARY)?\b|\bON COMMIT DROP\b|pg_(?:try_)?advisory_|\bLOCK TABLE\b|\bLISTEN\b/i;
// A message's header ("Message Formats" of PostgreSQL): its type, and its length with the length field.
const headerBytes = 5;
/** A statement whose outcome is lost. The response is the same whether or not the server has run it. */
type Loss = { readonly isRun: boolean };

/**
 * Starts a proxy to the server whose socket is in `serverFolder`.
 *
 * To refuse a statement, the proxy changes the first letter of its text or name, so that the server reports an error
 * and the transaction is in the state after a real error. The proxy then replaces the error's SQLSTATE: 0A000 for
 * features that these engines lack, 40001 at random, and 40003 at random when a transaction ends and its outcome may be
 * lost, which was committed in every second case.
 */
async function startDistributedProxy(serverFolder: string, dice: Pick<Dice, "roll">): Promise<DistributedProxy> {
  const refused = new Map<string, number>();
  const state = { failOneIn: 0, losesOutcomes: false };
  const count = (sqlState: string): string => {
    refused.set(sqlState, (refused.get(sqlState) ?? 0) + 1);
    return sqlState;
  };

  /** Decides whether a statement fails. Returns the SQLSTATE to refuse it with, or how its outcome is lost. */
  const decide = (sql: string, isInTransaction: boolean): string | Loss | undefined => {
    if (lacking.test(sql)) return count("0A000");
    if (state.failOneIn === 0 || dice.roll(state.failOneIn) > 0) return undefined;
    const endsTransaction = sql.startsWith("COMMIT") || (!isInTransaction && !sql.startsWith("BEGIN"));
    if (!state.losesOutcomes || !endsTransaction || dice.roll(2) === 0) return count("40001");
    count("40003");
    return { isRun: dice.roll(2) === 0 };
  };

  const proxy = await startPostgresProxy(serverFolder, (client, server) => {
    let isStarted = false;
    let isInTransaction = false;
    let sqlState: string | undefined;
    let isLost = false;
    const texts = new Map<string, string>();
    onMessages(
      client,
      () => isStarted,
      (message) => {
        isStarted = true;
        const type = String.fromCharCode(message[0] ?? 0);
        if (type === "P") {
          const name = textAt(message, headerBytes);
          texts.set(name, textAt(message, headerBytes + name.length + 1));
        }
        const at = statementAt(type, message);
        if (at > 0) {
          const written = textAt(message, at);
          const decision = decide((texts.get(written) ?? written).trim(), isInTransaction);
          isLost = typeof decision === "object" && decision.isRun;
          sqlState = typeof decision === "object" ? "40003" : decision;
          if (sqlState !== undefined && !isLost) message[at] = "!".charCodeAt(0);
        }
        server.write(message);
      },
    );
    onMessages(
      server,
      () => true,
      (message) => {
        const type = String.fromCharCode(message[0] ?? 0);
        if (type === "Z") isInTransaction = message[headerBytes] !== "I".charCodeAt(0);
        if (isLost) {
          if (type !== "Z") return;
          isLost = false;
          client.write(errorMessage("40003"));
        } else if (type === "E" && sqlState !== undefined) {
          client.write(errorMessage(sqlState));
          sqlState = undefined;
          return;
        }
        client.write(message);
      },
    );
  });

  return Object.assign(state, { ...proxy, refused });
}

/** Returns the offset of the text or name of the statement that a message runs; -1 if it runs none. */
function statementAt(type: string, message: Buffer): number {
  if (type === "Q") return headerBytes;
  const second = message.indexOf(0, headerBytes) + 1;
  // A named statement runs with the message after Parse, an unnamed statement with Parse itself.
  if (type === "P") return second === headerBytes + 1 ? second : -1;
  return type === "B" && message[second] !== 0 ? second : -1;
}

const textAt = (message: Buffer, at: number): string => message.toString("utf8", at, message.indexOf(0, at));

/** Calls `onMessage` with each complete message. A client's first message has no type. */
function onMessages(socket: Socket, hasType: () => boolean, onMessage: (message: Buffer) => void): void {
  let rest = Buffer.alloc(0);
  socket.on("data", (data: Buffer) => {
    rest = Buffer.concat([rest, data]);
    for (;;) {
      const typeBytes = hasType() ? 1 : 0;
      if (rest.length < typeBytes + 4) return;
      const end = typeBytes + rest.readInt32BE(typeBytes);
      if (rest.length < end) return;
      onMessage(rest.subarray(0, end));
      rest = rest.subarray(end);
    }
  });
}

function errorMessage(sqlState: string): Buffer {
  const fields = `SERROR\0VERROR\0C${sqlState}\0Minjected\0\0`;
  const message = Buffer.alloc(headerBytes + fields.length);
  message.write("E");
  message.writeInt32BE(4 + fields.length, 1);
  message.write(fields, headerBytes, "latin1");
  return message;
}

let proxy: DistributedProxy;
const server = shared(() => startPostgres());
// Each test has a separate random generator, so that the same statements fail when a test runs alone.
beforeEach(async () => void (proxy = await startDistributedProxy(server.socketFolder, new Dice(testSeed))));
afterEach(() => proxy[Symbol.asyncDispose]());

const refusals = (...sqlStates: string[]): number =>
  sqlStates.reduce((sum, sqlState) => sum + (proxy.refused.get(sqlState) ?? 0), 0);

const through = (url: string): string => url.replace(server.socketFolder, proxy.socketFolder);
const failOneIn = 8;

/** Runs work while one statement in eight fails. */
async function throughFaults<Result>(work: () => Promise<Result>): Promise<Result> {
  const before = refusals("40001", "40003");
  proxy.failOneIn = failOneIn;
  try {
    return await work();
  } finally {
    proxy.failOneIn = 0;
    expect(refusals("40001", "40003")).toBeGreaterThan(before);
    expect(refusals("0A000")).toBe(0);
  }
}

const schemaOf = (url: string): Promise<unknown[]> =>
  runSql(
    url,
    `SELECT relname, relkind, (SELECT indisvalid FROM pg_index WHERE indexrelid = oid) FROM pg_class
     WHERE relnamespace = current_schema()::regnamespace AND relname !~ '_[0-9]{8}' ORDER BY 1`,
  );

/** Returns a caller's call. Every second plant is deleted with a key. */
function callFor(id: bigint, caller: number): DeleteCall {
  const requestId = `request-${caller}`;
  return deleteCall(id % 2n === 0n ? { requestId, idempotencyKey: `key-${id}-${caller}` } : { requestId });
}

const ids = Array.from({ length: 40 }, (_, i) => BigInt(i));

describe("a store on a server with a distributed engine's errors", () => {
  test("runs each migration step once in concurrent processes", async () => {
    const url = await server.createSchema();
    await throughFaults(() =>
      Promise.all(Array.from({ length: 4 }, () => migratePostgres(through(url), undefined, laterSteps))),
    );
    expect(await schemaOf(url)).toEqual(await schemaOf(await createSchemaOfVersion(server, latestVersion)));
    expect(await runSql(url, "SELECT version FROM plantstore_schema")).toEqual([{ version: latestVersion }]);
  });

  test("continues a migration after any statement is refused", async () => {
    const url = await server.createPlants();
    let refused = true;
    for (let statement = 0; refused; statement++) {
      let next = 0;
      const dice = { roll: (sides: number) => (sides === failOneIn && next++ === statement ? 0 : 1) };
      await using once = await startDistributedProxy(server.socketFolder, dice);
      once.failOneIn = failOneIn;
      await migratePostgres(url.replace(server.socketFolder, once.socketFolder));
      refused = once.refused.size > 0;
      expect(refused).toBe(statement < next);
      if (!refused) expect(statement).toBeGreaterThan(10);
    }
  });

  test("imports plants, counts each once, and skips deleted plants", async () => {
    const url = await server.createPlants();
    const sql = `INSERT INTO deletions (plant_id, subject, request_id, batch)
       SELECT id, '', '', gen_random_uuid() FROM generate_series(1000, 1009) AS id`;
    await runSql(url, sql);
    const again = [5n, 1_003n, 1_003n];
    await throughFaults(async () => {
      await using database = await openPostgresDatabase(through(url));
      await using running = await database.startImport();
      for (const id of ids) {
        await expect(running.add([id, ...again])).resolves.toEqual(
          id === 0n
            ? { added: 2, present: 0, deleted: 2 }
            : { added: id === 5n ? 0 : 1, present: id === 5n ? 2 : 1, deleted: 2 },
        );
      }
    });
    await using database = await openPostgresDatabase(url);
    expect((await collect(database.exportPlants())).flat()).toEqual(ids);
  });

  test("retries the check before an import", async () => {
    const url = await server.createPlants();
    /** Runs work while every statement fails, until the first refused statement. */
    const refuseFirst = async <Result>(work: () => Promise<Result>): Promise<Result> => {
      const before = refusals("40001", "40003");
      proxy.failOneIn = 1;
      const working = work();
      await Promise.race([expect.poll(() => refusals("40001", "40003")).toBeGreaterThan(before), working]);
      proxy.failOneIn = 0;
      return await working;
    };
    await using database = await refuseFirst(() => openPostgresDatabase(through(url)));
    await using running = await refuseFirst(() => database.startImport());
    await expect(running.add([1n])).resolves.toEqual({ added: 1, present: 0, deleted: 0 });
  });

  test("detects with a write that its server has recovered", async () => {
    const url = await server.createPlants([1n]);
    await runSql(url, "CREATE ROLE writer LOGIN SUPERUSER; ALTER ROLE writer SET default_transaction_read_only = on");
    const store = await openPostgresStore({ url: through(url).replace("user=tester", "user=writer") });
    expect(store.problem).toMatch(/: the server is read-only: default_transaction_read_only is set by ALTER ROLE$/);
    await runSql(url, "ALTER ROLE writer RESET default_transaction_read_only");
    await expect.poll(() => store.problem).toBeUndefined();
    await expect(store.delete(1n, deleteCall())).resolves.toBe(true);
    await store.close();
    expect(refusals("0A000")).toBe(0);
  });

  test("reports each plant as deleted to exactly one of two deletions", async () => {
    const url = await server.createPlants(ids);
    const store = await openPostgresStore({ url: through(url) });
    proxy.losesOutcomes = true;
    const outcomes = await throughFaults(async () => {
      const pairs = [];
      for (const id of ids) pairs.push(await Promise.all([0, 1].map((i) => store.delete(id, callFor(id, i)))));
      return pairs;
    });
    await store.close();
    expect(outcomes.map((pair) => pair.filter((deleted) => deleted))).toEqual(ids.map(() => [true]));
    expect(await runSql(url, "SELECT plant_id, request_id FROM deletions ORDER BY plant_id")).toEqual(
      ids.map((id) => ({ plant_id: String(id), request_id: `request-${outcomes[Number(id)]?.indexOf(true)}` })),
    );
    expect(await runSql(url, "SELECT FROM plants")).toEqual([]);
  });
});
