import { randomUUID } from "node:crypto";
import { Code, ConnectError } from "@connectrpc/connect";
import { Client } from "pg";
import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import type { PendingDelete } from "../../../../src/plantstore/plants/delete-queue.ts";
import { storeAway } from "../../../../src/plantstore/service/errors.ts";
import type { LockedDelete } from "../../../../src/plantstore/plants/postgres/delete/locked-deletes.ts";
import {
  BatchGivenUp,
  runBatch as runBatchAt,
  type RunBatchOptions,
} from "../../../../src/plantstore/plants/postgres/delete/run-batch.ts";
import { backoffMs } from "../../../../src/plantstore/plants/postgres/server/backoff.ts";
import { readServerUrl } from "../../../../src/plantstore/plants/postgres/server/server-url.ts";
import { Session } from "../../../../src/plantstore/plants/postgres/server/session.ts";
import { AnsweredByKey } from "../../../../src/plantstore/plants/postgres/delete/answered-by-key.ts";
import { startCuttingProxy } from "../../../support/plants/cutting-proxy.ts";
import { deleteCall } from "../../../support/plants/delete-call.ts";
import { countTries, failAlways, failTries } from "../../../support/plants/failing-tries.ts";
import {
  configOf,
  openClient,
  type PostgresServer,
  runSql,
  startPostgres,
  withoutStandby,
} from "../../../support/plants/postgres-server.ts";
import { schemaOf } from "../../../support/plants/schema-of.ts";
import { oneServer } from "../../../../src/plantstore/plants/postgres/delete/one-server.ts";

const minuteMs = 60_000;
const lockTimeouts = { lockTimeoutMs: 50, statementTimeoutMs: minuteMs, answerTimeoutMs: minuteMs };

const away = "the plant store cannot delete at the moment";
const unknown = "the outcome of the deletion is unknown; repeating the request is safe";

let server: PostgresServer;
beforeAll(async () => {
  server = await startPostgres(["-c", "deadlock_timeout=50ms"]);
});
// Some tests stop it.
afterEach(() => server.start());
afterAll(() => server[Symbol.asyncDispose]());

/** The URL of a new schema with plants from 1 on. */
function createPlants(count: number): Promise<string> {
  return server.createPlants(Array.from({ length: count }, (_, i) => BigInt(i + 1)));
}

function runBatchWith(
  session: Session,
  pending: readonly PendingDelete[],
  options: Omit<RunBatchOptions, "placement">,
): ReturnType<typeof runBatchAt> {
  return runBatchAt(session, pending, { ...options, placement: oneServer(schemaOf(session)) });
}

/** Runs a batch of which nothing is set aside. */
function runBatch(session: Session, pending: readonly PendingDelete[]) {
  return runBatchWith(session, pending, { setAside: failToSetAside });
}

function failToSetAside({ id }: PendingDelete): never {
  throw new Error(`plant ${id} was set aside`);
}

/** Callers that ignore their outcome. */
function callersOf(...ids: readonly bigint[]): PendingDelete[] {
  return ids.map((id) => ({ id, call: deleteCall(), resolve: () => {}, reject: () => {} }));
}

/** A caller with an idempotency key that ignores its outcome. */
function callerWith(id: bigint, idempotencyKey: string): PendingDelete {
  return { id, call: deleteCall({ idempotencyKey }), resolve: () => {}, reject: () => {} };
}

/** Callers, and what each was told first: only that counts. */
function listenersOf(...ids: readonly bigint[]): { readonly taken: PendingDelete[]; readonly answers: unknown[] } {
  const answers: unknown[] = ids.map(() => undefined);
  const answer = (i: number, outcome: unknown): void => void (answers[i] ??= outcome);
  const taken = ids.map((id, i) => ({
    id,
    call: deleteCall(),
    resolve: (deleted: boolean) => answer(i, deleted),
    reject: (reason: unknown) => answer(i, ConnectError.from(reason).rawMessage),
  }));
  return { taken, answers };
}

async function plantsOf(url: string): Promise<unknown[]> {
  return (await runSql(url, "SELECT id FROM plants ORDER BY id")).map(({ id }) => id);
}

describe("a batch that fails", () => {
  test.each([
    { sqlStates: ["40001", "40P01", "55P03"], connection: "its connection" },
    { sqlStates: ["57014"], connection: "its connection" },
    { sqlStates: ["53100", "53200"], connection: "its connection" },
    { sqlStates: ["57P03"], connection: "a new connection" },
    { sqlStates: ["53300", "25006"], connection: "a new connection" },
    { sqlStates: ["XX000"], connection: "a new connection" },
    { sqlStates: ["08006", "57P01"], connection: "a new connection" },
    { sqlStates: ["40003"], connection: "a new connection" },
  ])("with $sqlStates is run again until it is done, on $connection", async ({ sqlStates, connection }) => {
    const url = await createPlants(3);
    await failTries(url, "DELETE ON plants", sqlStates);
    const session = new Session(readServerUrl(url));
    const [before] = await session.query("SELECT pg_backend_pid()");
    await expect(runBatch(session, callersOf(1n, 2n, 9n))).resolves.toEqual([true, true, false]);
    const [after] = await session.query("SELECT pg_backend_pid()");
    await session.close();
    expect(after?.[0] === before?.[0]).toBe(connection === "its connection");
    expect(await countTries(url)).toBe(sqlStates.length + 1);
    expect(await plantsOf(url)).toEqual(["3"]);
  });

  // A caller may rely on being told that nothing was done; whether the server is well decides about readiness.
  test.each([
    { sqlStates: ["42P01"], answers: away, server: "refusing" },
    { sqlStates: ["57014", "42P01"], answers: away, server: "refusing" },
    { sqlStates: ["XX000", "42P01"], answers: unknown, server: "refusing" },
    { sqlStates: ["XX000", "40001", "53100", "42P01"], answers: unknown, server: "refusing" },
  ])("with $sqlStates is given up: $answers", async ({ sqlStates, ...givenUp }) => {
    const url = await createPlants(2);
    await failTries(url, "DELETE ON plants", sqlStates);
    const session = new Session(readServerUrl(url));
    await expect(runBatch(session, callersOf(1n, 2n))).rejects.toMatchObject({
      reason: { rawMessage: givenUp.answers, code: Code.Unavailable },
      server: givenUp.server,
    });
    await session.close();
    expect(await countTries(url)).toBe(sqlStates.length);
    expect(await plantsOf(url)).toEqual(["1", "2"]);
  });

  test.each([
    { sqlState: "40001", answers: away, server: "busy" },
    { sqlState: "53100", answers: away, server: "away" },
    { sqlState: "57P03", answers: away, server: "away" },
    { sqlState: "XX000", answers: unknown, server: "away" },
  ])("with $sqlState for as long as there is time is given up: $answers", async ({ sqlState, ...givenUp }) => {
    const url = await createPlants(2);
    await failTries(url, "DELETE ON plants", Array<string>(1_000).fill(sqlState));
    const session = new Session(readServerUrl(url));
    const ended = expect(runBatch(session, callersOf(1n, 2n))).rejects.toMatchObject({
      reason: { rawMessage: givenUp.answers, code: Code.Unavailable },
      server: givenUp.server,
    });
    await expect.poll(() => countTries(url)).toBeGreaterThan(0);
    session.untilMs = 0;
    await ended;
    await session.close();
    expect(await plantsOf(url)).toEqual(["1", "2"]);
  });

  test.each([
    { name: "the server is not there", arrange: () => server.stop("fast"), user: "tester" },
    { name: "the server does not let the user in", arrange: () => Promise.resolve(), user: "nobody" },
  ])("because $name has done nothing", async ({ arrange, user }) => {
    const url = await createPlants(1);
    await arrange();
    const session = new Session(readServerUrl(url.replace("user=tester", `user=${user}`)));
    // A user that the server does not let in is told so at once, however long the caller would wait.
    if (user === "tester") session.untilMs = 0;
    await expect(runBatch(session, callersOf(1n))).rejects.toMatchObject({
      reason: { rawMessage: away },
      server: user === "tester" ? "away" : "refusing",
    });
  });

  // While there are plants that others keep locked, a batch waits for none.
  test.each([
    { sqlStates: ["40001"], ended: [true, true], tries: 2 },
    { sqlStates: ["53100"], ended: [true, true], tries: 2 },
    { sqlStates: ["XX000"], ended: [true, true], tries: 2 },
    { sqlStates: ["P0001"], ended: [true, true], tries: 3 },
    { sqlStates: ["42P01"], ended: "refusing", tries: 1 },
  ])(
    "with $sqlStates in an attempt that skips locked plants ends as any other: $ended",
    async ({ sqlStates, ended, tries }) => {
      const url = await createPlants(2);
      await failTries(url, "DELETE ON plants", sqlStates);
      const session = new Session(readServerUrl(url));
      const options = { setAside: failToSetAside, skipsLocked: true, afterFault: true };
      const running = runBatchWith(session, callersOf(1n, 2n), options);
      await expect(running.catch((fault: unknown) => fault instanceof BatchGivenUp && fault.server)).resolves.toEqual(
        ended,
      );
      await session.close();
      expect(await countTries(url)).toBe(tries);
    },
  );

  test("has done nothing if the lookup of its keys fails, which comes first after a fault", async () => {
    const url = await createPlants(1);
    await failTries(url, "UPDATE ON deletions", ["XX000", "42P01"]);
    const session = new Session(readServerUrl(url));
    const options = { setAside: failToSetAside, afterFault: true };
    await expect(runBatchWith(session, [callerWith(1n, "key")], options)).rejects.toMatchObject({
      reason: { rawMessage: away },
      server: "refusing",
    });
    await session.close();
    expect(await plantsOf(url)).toEqual(["1"]);
  });

  test("is not tried again once all its callers have given up", async () => {
    const url = await createPlants(1);
    await failTries(url, "DELETE ON plants", ["40001"]);
    const session = new Session(readServerUrl(url));
    const controller = new AbortController();
    const call = deleteCall({ signal: controller.signal });
    const taken = [{ id: 1n, call, resolve: () => {}, reject: () => {} }];
    const outcomes = runBatch(session, taken);
    // Its parameters are written by now.
    controller.abort("too late");
    await expect(outcomes).rejects.toMatchObject({ server: "well" });
    await session.close();
    expect(await countTries(url)).toBe(1);
  });

  test("is repeated with pauses that grow", async () => {
    const url = await createPlants(1);
    await failTries(url, "DELETE ON plants", Array<string>(1_000).fill("40001"));
    const session = new Session(readServerUrl(url));
    // Of this, a second is for the last try, and to end it.
    session.untilMs = performance.now() + 1_300;
    await expect(runBatch(session, callersOf(1n))).rejects.toMatchObject({ server: "busy" });
    await session.close();
    // With pauses that double from 5 ms to a second there are ten or so; as fast as the server answers, hundreds.
    expect(await countTries(url)).toBeLessThan(16);
  });

  test.each([
    { tries: 0, pauseMsMax: 5 },
    { tries: 3, pauseMsMax: 40 },
    { tries: 100, pauseMsMax: 1_000 },
  ])("pauses at random, for up to $pauseMsMax ms after $tries other tries", ({ tries, pauseMsMax }) => {
    const pauses = Array.from({ length: 100 }, () => backoffMs(tries));
    expect(Math.max(...pauses)).toBeLessThan(pauseMsMax);
    expect(Math.max(...pauses)).toBeGreaterThan(pauseMsMax / 2);
    expect(Math.min(...pauses)).toBeLessThan(pauseMsMax / 2);
  });
});

describe("a batch of which the server refuses something", () => {
  // The first statement is the whole batch, the next one its first half.
  test.each([
    {
      sqlStates: ["P0001", "42P01"],
      result: "given up",
      answers: [undefined, undefined, undefined, undefined],
      tries: 2,
    },
    { sqlStates: ["P0001", "XX000", "P0001"], result: "done", answers: [true, true, true, true], tries: 6 },
    // A part that may have been done, and is refused, is looked for among what is there and what is recorded.
    {
      sqlStates: ["XX000", "23503", "23503", "23503"],
      result: "done",
      answers: ["the database keeps plant 1", true, true, true],
      tries: 6,
    },
    { sqlStates: ["XX000", "P0001", "42P01"], result: "given up", answers: Array(4).fill(undefined), tries: 3 },
    {
      sqlStates: ["23503", "23503", "23503"],
      result: "done",
      answers: ["the database keeps plant 1", true, true, true],
      tries: 5,
    },
  ])(
    "is $result in its parts, and each caller told the truth: $sqlStates",
    async ({ sqlStates, result, answers, tries }) => {
      const url = await createPlants(4);
      await failTries(url, "DELETE ON plants", sqlStates);
      const session = new Session(readServerUrl(url));
      const listeners = listenersOf(1n, 2n, 3n, 4n);
      const ended = await runBatch(session, listeners.taken).then(
        () => "done",
        () => "given up",
      );
      await session.close();
      expect(ended).toBe(result);
      expect(listeners.answers).toEqual(answers);
      expect(await countTries(url)).toBe(tries);
      // What was told is what is there.
      expect(await plantsOf(url)).toEqual(["1", "2", "3", "4"].filter((_, i) => answers[i] !== true));
    },
  );
});

describe("a batch that is committed and whose answer is lost", () => {
  test.each([
    { name: "nothing else fails", sqlStates: [] },
    { name: "the look does nothing, because of others at the same rows", sqlStates: ["40001", "55P03"] },
    { name: "the look meets a server that lacks something and one that stops", sqlStates: ["53100", "57P03"] },
    { name: "the look may have been committed, too", sqlStates: ["XX000", "40001"] },
  ])("has its callers told what it has done, and not what other batches did: $name", async ({ sqlStates }) => {
    const url = await createPlants(4);
    await using proxy = await startCuttingProxy(server.socketFolder);
    const session = new Session(readServerUrl(url.replace(server.socketFolder, proxy.socketFolder)));
    // Somebody has deleted plant 4 before.
    await expect(runBatch(session, callersOf(4n))).resolves.toEqual([true]);
    await failTries(url, "UPDATE ON deletions", sqlStates);
    // A look writes to no record but its own.
    await runSql(
      url,
      `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'not this one'; END $$;
       CREATE TRIGGER refuse BEFORE UPDATE ON deletions FOR EACH ROW WHEN (OLD.plant_id = 4) EXECUTE FUNCTION refuse()`,
    );
    const wasCut = proxy.cutNext("before-reply");
    const outcomes = runBatch(session, callersOf(1n, 2n, 4n, 9n, 1n));
    await wasCut;
    await expect(outcomes).resolves.toEqual([true, true, false, false, false]);
    await session.close();
    expect(await countTries(url)).toBe(sqlStates.length + 1);
    expect(await plantsOf(url)).toEqual(["3"]);
    expect(await runSql(url, "SELECT plant_id FROM deletions ORDER BY plant_id")).toEqual([
      { plant_id: "1" },
      { plant_id: "2" },
      { plant_id: "4" },
    ]);
  });
});

describe("a batch that is committed, whose answer is lost, and which is refused when it is run again", () => {
  test("has its callers told what it has done, one by one", async () => {
    const url = await createPlants(3);
    await using proxy = await startCuttingProxy(server.socketFolder);
    // The first statement passes; refused are the second, its first half, and plant 1 by itself.
    await failTries(url, "DELETE ON plants", ["", "P0001", "P0001", "P0001"]);
    const session = new Session(readServerUrl(url.replace(server.socketFolder, proxy.socketFolder)));
    void proxy.cutNext("before-reply");
    const setAside: PendingDelete[] = [];
    const callers = callersOf(1n, 2n, 4n, 1n);
    const outcomes = await runBatchWith(session, callers, { setAside: (one) => setAside.push(one) });
    // The second caller for plant 1 begins anew: the record is that of the first.
    expect(outcomes).toEqual([true, true, false, undefined]);
    expect(setAside).toEqual([callers[3]]);
    await expect(runBatch(session, setAside)).resolves.toEqual([false]);
    await session.close();
    expect(await plantsOf(url)).toEqual(["3"]);
    expect(await runSql(url, "SELECT plant_id FROM deletions ORDER BY plant_id")).toEqual([
      { plant_id: "1" },
      { plant_id: "2" },
    ]);
  });

  test("has nobody told that a plant was not there, if a trigger keeps its record from being looked at", async () => {
    const url = await createPlants(2);
    await using proxy = await startCuttingProxy(server.socketFolder);
    await runSql(
      url,
      `CREATE FUNCTION silence() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;
       CREATE TRIGGER silence BEFORE UPDATE ON deletions FOR EACH ROW EXECUTE FUNCTION silence()`,
    );
    const session = new Session(readServerUrl(url.replace(server.socketFolder, proxy.socketFolder)));
    void proxy.cutNext("before-reply");
    const { taken, answers } = listenersOf(1n, 2n);
    await expect(runBatch(session, taken)).resolves.toEqual([undefined, undefined]);
    await session.close();
    expect(answers).toEqual([unknown, unknown]);
    expect(await plantsOf(url)).toEqual([]);
  });
});

describe("a deletion that may be done, and is refused when it is run again", () => {
  test.each([
    { sqlState: "P0001", taken: callersOf(1n), server: "well" },
    // Of two, as soon as it fails for the first.
    { sqlState: "XX000", taken: callersOf(1n, 2n), server: "away" },
  ])("is in doubt where the look at its record fails with $sqlState", async ({ sqlState, taken, ...givenUp }) => {
    const url = await createPlants(2);
    await failTries(url, "DELETE ON plants", ["P0001", "P0001"]);
    await failAlways(url, "UPDATE ON deletions", sqlState);
    const session = new Session(readServerUrl(url));
    const [before] = await session.query("SELECT pg_backend_pid()");
    const ended = runBatchWith(session, taken, { setAside: failToSetAside, token: randomUUID() });
    await expect(ended).rejects.toMatchObject({ reason: { rawMessage: unknown }, ...givenUp });
    // Another connection may find what this one does not.
    await expect(session.query("SELECT pg_backend_pid()")).resolves.not.toEqual([before]);
    await session.close();
  });

  test.each([
    { name: "its plant", arrange: "SELECT", lock: "SELECT FROM plants FOR UPDATE", sqlStates: ["P0001"] },
    {
      name: "a row that would go with its plant",
      arrange: "CREATE TABLE beds (plant bigint REFERENCES plants ON DELETE CASCADE); INSERT INTO beds VALUES (1)",
      lock: "SELECT FROM beds FOR UPDATE",
      sqlStates: [],
    },
  ])("is set aside, in doubt, where $name is locked", async ({ arrange, lock, sqlStates }) => {
    const url = await createPlants(1);
    await runSql(url, arrange);
    await failTries(url, "DELETE ON plants", sqlStates);
    const other = await openClient(url, `BEGIN; ${lock}`);
    const token = randomUUID();
    const setAside: LockedDelete[] = [];
    const options = { setAside: (one: LockedDelete) => void setAside.push(one), token };
    const session = new Session(readServerUrl(url), lockTimeouts);
    const [before] = await session.query("SELECT pg_backend_pid()");
    await expect(runBatchWith(session, callersOf(1n), options)).resolves.toEqual([undefined]);
    expect(setAside).toMatchObject([{ id: 1n, token }]);
    // Its host is well.
    await expect(session.query("SELECT pg_backend_pid()")).resolves.toEqual([before]);
    await session.close();
    await other.end();
  });

  test("has its caller told what the attempt that was lost comes to, though that is still running", async () => {
    const url = await createPlants(1);
    // The first statement is that of the lost attempt.
    await failTries(url, "DELETE ON plants", ["", "P0001"]);
    const token = randomUUID();
    const lost = await openClient(url, "BEGIN; DELETE FROM plants");
    await lost.query(`INSERT INTO deletions (plant_id, subject, request_id, batch) VALUES (1, '', '', '${token}')`);
    const session = new Session(readServerUrl(url));
    const outcomes = runBatchWith(session, callersOf(1n), { setAside: failToSetAside, token });
    await expect
      .poll(() => runSql(url, "SELECT FROM pg_locks WHERE NOT granted AND locktype = 'transactionid'"))
      .not.toEqual([]);
    await lost.query("COMMIT");
    await lost.end();
    await expect(outcomes).resolves.toEqual([true]);
    await session.close();
  });

  test("has deleted the plant if its record says so, though the plant is there again", async () => {
    const url = await createPlants(1);
    await failTries(url, "DELETE ON plants", ["P0001"]);
    const token = randomUUID();
    await runSql(
      url,
      `INSERT INTO deletions (plant_id, subject, request_id, batch) VALUES (1, 'tester', 'r', '${token}')`,
    );
    const session = new Session(readServerUrl(url));
    const outcomes = runBatchWith(session, callersOf(1n), { setAside: failToSetAside, token });
    await expect(outcomes).resolves.toEqual([true]);
    await session.close();
    expect(await plantsOf(url)).toEqual(["1"]);
  });

  test("is looked for neither by its key nor on standbys once its plant is found there", async () => {
    const url = await createPlants(1);
    await runSql(
      url,
      `CREATE TABLE beds (plant bigint REFERENCES plants);
       INSERT INTO beds VALUES (1)`,
    );
    await failTries(url, "UPDATE ON deletions", []);
    const session = new Session(readServerUrl(url));
    const asked = vi.spyOn(session, "query");
    const options = { setAside: failToSetAside, token: randomUUID() };
    await expect(runBatchWith(session, [callerWith(1n, "key")], options)).resolves.toEqual([undefined]);
    await session.close();
    expect(JSON.stringify(asked.mock.calls)).not.toContain("synchronous_standby_names");
    // By its key before it was run again, and by its record.
    expect(await countTries(url)).toBe(2);
  });
});

describe("a batch that has deleted a plant", () => {
  /** The URL of a plant, for a user whom the server refuses whatever it asks after that. */
  async function createLastPlant(): Promise<string> {
    const url = await createPlants(1);
    const schema = schemaOf(new Session(readServerUrl(url))).quoted;
    await runSql(
      url,
      `CREATE ROLE stripped LOGIN; GRANT USAGE ON SCHEMA ${schema} TO stripped;
       GRANT ALL ON plants, deletions TO stripped;
       CREATE FUNCTION strip() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS
         $$ BEGIN REVOKE ALL ON ${schema}.plants, ${schema}.deletions FROM stripped; RETURN NULL; END $$;
       CREATE TRIGGER strip AFTER DELETE ON plants EXECUTE FUNCTION strip()`,
    );
    onTestFinished(async () => void (await runSql(url, "DROP OWNED BY stripped; DROP ROLE stripped")));
    return url.replace("user=tester", "user=stripped");
  }

  test("asks nothing more in an attempt that skips locked plants, since its commit has waited for the standbys", async () => {
    const session = new Session(readServerUrl(await createLastPlant()));
    const options = { setAside: failToSetAside, skipsLocked: true };
    await expect(runBatchWith(session, callersOf(1n, 9n), options)).resolves.toEqual([true, false]);
    await session.close();
  });

  test.each([
    { name: "a plant that is not there", taken: callersOf(1n, 9n) },
    { name: "the key of another caller", taken: ["a", "b"].map((key) => callerWith(1n, key)) },
  ])("is in doubt where the look for $name fails", async ({ taken }) => {
    const url = await createLastPlant();
    const session = new Session(readServerUrl(url));
    await expect(runBatch(session, taken)).rejects.toMatchObject({
      reason: { rawMessage: unknown },
      server: "refusing",
    });
    await session.close();
    expect(await plantsOf(url.replace("user=stripped", "user=tester"))).toEqual([]);
  });
});

test("a batch deletes a plant for the first of the callers that name it, and records no other", async () => {
  const url = await createPlants(3);
  const session = new Session(readServerUrl(url));
  const taken = [1n, 2n, 1n, 1n].map((id, i) => ({
    id,
    call: deleteCall({ subject: `caller-${i}` }),
    resolve: () => {},
    reject: () => {},
  }));
  await expect(runBatch(session, taken)).resolves.toEqual([true, true, false, false]);
  await session.close();
  expect(await runSql(url, "SELECT plant_id, subject FROM deletions ORDER BY plant_id")).toEqual([
    { plant_id: "1", subject: "caller-0" },
    { plant_id: "2", subject: "caller-1" },
  ]);
});

describe("a batch with plants that another transaction keeps locked", () => {
  test.each([
    { name: "is done but for these", arrange: "SELECT", lock: "SELECT FROM plants WHERE id IN (2, 5) FOR UPDATE" },
    {
      name: "is done but for those whose rows in another table are locked",
      arrange: `CREATE TABLE beds (plant bigint REFERENCES plants ON DELETE CASCADE);
                INSERT INTO beds SELECT generate_series(1, 6)`,
      lock: "SELECT FROM beds WHERE plant IN (2, 5) FOR UPDATE",
    },
    {
      name: "is done but for these in its parts, none of which waits again",
      arrange: "SELECT",
      lock: "SELECT FROM plants WHERE id IN (2, 5) FOR UPDATE",
      sqlStates: ["", "P0001"],
      tries: 4,
    },
  ])("$name, while the lock is held", async ({ arrange, lock, sqlStates, tries }) => {
    const url = await createPlants(6);
    await runSql(url, arrange);
    if (sqlStates !== undefined) await failTries(url, "DELETE ON plants", sqlStates);
    const other = await openClient(url, `BEGIN; ${lock}`);
    const session = new Session(readServerUrl(url), lockTimeouts);
    const { taken, answers } = listenersOf(1n, 2n, 3n, 2n, 9n, 5n, 6n, 6n);
    const setAside: bigint[] = [];
    // Which of the callers have been told by the batch itself.
    const outcomes = await runBatchWith(session, taken, { setAside: ({ id }) => setAside.push(id) });
    taken.forEach(({ resolve }, i) => outcomes[i] !== undefined && resolve(outcomes[i]));
    expect(answers).toEqual([true, undefined, true, undefined, false, undefined, true, false]);
    expect(setAside).toEqual([2n, 2n, 5n]);
    expect(await plantsOf(url)).toEqual(["2", "4", "5"]);
    if (tries !== undefined) expect(await countTries(url)).toBe(tries);
    await other.end();
    await session.close();
  });

  test.each([
    { name: "by its own record", recordedBy: "this batch", isDeleted: true },
    { name: "and not by that of another", recordedBy: "another", isDeleted: false },
  ])("that may be done knows afterwards what it has deleted, $name", async ({ recordedBy, isDeleted }) => {
    const url = await createPlants(3);
    await runSql(url, "DELETE FROM plants WHERE id = 3");
    const token = randomUUID();
    const recorded = recordedBy === "this batch" ? token : randomUUID();
    // The attempt that was lost is still running.
    const lost = await openClient(url, "BEGIN; DELETE FROM plants WHERE id = 1");
    await lost.query(`INSERT INTO deletions (plant_id, subject, request_id, batch) VALUES (1, '', '', '${recorded}')`);
    const session = new Session(readServerUrl(url), lockTimeouts);
    const { taken, answers } = listenersOf(1n, 1n, 3n, 2n);
    const setAside: LockedDelete[] = [];
    const options = { setAside: (one: LockedDelete) => void setAside.push(one), token };
    await expect(runBatchWith(session, taken, options)).resolves.toEqual([undefined, undefined, false, true]);
    // Whatever becomes of the first, its caller is not told that nothing was done.
    setAside.forEach(({ reject }) => reject(storeAway()));
    expect(answers).toEqual([unknown, away, undefined, undefined]);
    await lost.query("COMMIT");
    await lost.end();
    const [first] = setAside;
    await expect(runBatchWith(session, setAside.slice(0, 1), { ...options, token: first?.token })).resolves.toEqual([
      isDeleted,
    ]);
    await session.close();
  });

  test("waits for a whole table that is locked, and takes no plant for locked", async () => {
    const url = await createPlants(2);
    const other = await openClient(url, "BEGIN; LOCK TABLE plants IN SHARE MODE");
    const session = new Session(readServerUrl(url), lockTimeouts);
    const outcomes = runBatch(session, callersOf(1n, 2n));
    const timedOut = (): string[] => server.log.filter((line) => line.includes("lock timeout"));
    const before = timedOut().length;
    // It has tried both with and without waiting for plants.
    await expect.poll(() => timedOut().length).toBeGreaterThan(before + 2);
    await other.end();
    await expect(outcomes).resolves.toEqual([true, true]);
    await session.close();
  });
});

// A look is a write, which may fail although the deletion is done.
test.each(["RETURN NULL", "RAISE 'no'", "RAISE 'no' USING ERRCODE = '55P03'"])(
  "a batch that was answered looks at no record, and for no key: %s",
  async (statement) => {
    const url = await createPlants(2);
    await runSql(
      url,
      `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN ${statement}; END $$;
       CREATE TRIGGER refuse BEFORE UPDATE ON deletions FOR EACH ROW EXECUTE FUNCTION refuse();
       CREATE TRIGGER refuse_all BEFORE UPDATE ON deletions EXECUTE FUNCTION refuse()`,
    );
    const session = new Session(readServerUrl(url));
    const batch = [...callersOf(1n), callerWith(2n, "a")];
    await expect(runBatch(session, batch)).resolves.toEqual([true, true]);
    await session.close();
  },
);

test("a batch tells nobody that a plant is missing which a trigger keeps, although its first caller has gone", async () => {
  const url = await createPlants(1);
  await runSql(
    url,
    `CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;
     CREATE TRIGGER keep BEFORE DELETE ON plants FOR EACH ROW EXECUTE FUNCTION keep()`,
  );
  const session = new Session(readServerUrl(url));
  const call = deleteCall({ signal: AbortSignal.abort("gone") });
  const { taken, answers } = listenersOf(1n);
  const batch = [{ id: 1n, call, resolve: () => {}, reject: () => {} }, ...taken];
  await expect(runBatch(session, batch)).resolves.toEqual([undefined, undefined]);
  await session.close();
  expect(answers).toEqual(["the database keeps plant 1"]);
});

test("a batch says without a write that a plant is not there, where there are no standbys", async () => {
  const url = await createPlants(1);
  await runSql(
    url,
    `CREATE FUNCTION pg_logical_emit_message(boolean, text, text) RETURNS text LANGUAGE plpgsql AS
       $$ BEGIN RAISE 'No space left on device' USING ERRCODE = '53100'; END $$`,
  );
  // Its own functions come before those of the server.
  const session = new Session(readServerUrl(`${url}%2Cpg_catalog`));
  await expect(runBatch(session, callersOf(9n))).resolves.toEqual([false]);
  await session.close();
});

// It may be gone only here, by a deletion that they do not have.
test.each([
  { name: "locks are waited for", options: {} },
  { name: "locks are left alone", options: { skipsLocked: true } },
  { name: "it may be done, and is refused when it is run again", options: { token: randomUUID() }, refusal: "P0001" },
])("a batch says that a plant is not there once its standbys know it, where $name", async ({ options, refusal }) => {
  const url = await createPlants(1);
  if (refusal !== undefined) await failTries(url, "DELETE ON plants", [refusal]);
  const session = new Session(readServerUrl(url));
  let outcomes: ReturnType<typeof runBatch> | undefined;
  await withoutStandby(url, async () => {
    await expect.poll(() => session.query("SHOW synchronous_standby_names")).toEqual([["nobody"]]);
    outcomes = runBatchWith(session, callersOf(9n), { setAside: failToSetAside, ...options });
    const isTold = outcomes.then(() => true);
    const waits = expect
      .poll(() => runSql(url, "SELECT FROM pg_stat_activity WHERE wait_event = 'SyncRep'"))
      .toHaveLength(1);
    expect(await Promise.race([isTold, waits.then(() => false)])).toBe(false);
  });
  await expect(outcomes).resolves.toEqual([false]);
  await session.close();
});

test("a batch that is the victim of a deadlock is repeated", async () => {
  const url = await createPlants(3);
  const first = new Client(configOf(url));
  const other = new Client(configOf(url));
  await Promise.all([first.connect(), other.connect()]);
  const otherPid = String((await other.query("SELECT pg_backend_pid() AS pid")).rows[0].pid);
  const isWaiting = (pid: string): Promise<unknown> =>
    runSql(url, `SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND pid ${pid}`);

  // The batch takes plant 1 and waits for plant 2 …
  await first.query("BEGIN");
  await first.query("SELECT FROM plants WHERE id = 2 FOR UPDATE");
  await other.query("SET deadlock_timeout = '60s'");
  await other.query("BEGIN");
  await other.query("SELECT FROM plants WHERE id = 3 FOR UPDATE");
  const timeouts = { lockTimeoutMs: minuteMs, statementTimeoutMs: minuteMs, answerTimeoutMs: minuteMs };
  const session = new Session(readServerUrl(url), timeouts);
  const outcomes = runBatch(session, callersOf(1n, 2n, 3n));
  await expect.poll(() => isWaiting(`<> ${otherPid}`)).not.toEqual([]);
  // … the other transaction, which holds plant 3, waits for plant 1 …
  const locked = other.query("SELECT FROM plants WHERE id = 1 FOR UPDATE");
  await expect.poll(() => isWaiting(`= ${otherPid}`)).not.toEqual([]);
  // … and the batch goes on to plant 3, where it closes the circle and is the one to notice.
  await first.query("COMMIT");
  await locked;
  expect(server.log.filter((line) => line.includes("deadlock detected"))).not.toEqual([]);
  await other.query("COMMIT");
  await Promise.all([first.end(), other.end()]);

  await expect(outcomes).resolves.toEqual([true, true, true]);
  await session.close();
  expect(await runSql(url, "SELECT count(*) FROM deletions")).toEqual([{ count: "3" }]);
});

test("a batch leaves callers that give up out of its next tries, and tells them why", async () => {
  const url = await createPlants(3);
  await server.stop("fast");
  const session = new Session(readServerUrl(url));
  const controller = new AbortController();
  const answers: unknown[] = [];
  const calls = [deleteCall(), deleteCall({ signal: controller.signal }), deleteCall()];
  const taken = calls.map((call, i) => ({
    id: BigInt(i + 1),
    call,
    resolve: () => {},
    reject: (reason: unknown) => answers.push(reason),
  }));
  const outcomes = runBatch(session, taken);
  // The server takes longer to start than a connection to a socket without a listener takes to fail.
  controller.abort("too late");
  await server.start();
  await expect(outcomes).resolves.toEqual([true, false, true]);
  expect(new Set(answers)).toEqual(new Set(["too late"]));
  await session.close();
  expect(await plantsOf(url)).toEqual(["2"]);
});

test.each([
  { name: "was told by its key", isTold: true, signal: new AbortController().signal },
  { name: "is gone", isTold: false, signal: AbortSignal.abort() },
])("a part of a batch of which every caller $name asks nothing of the server", async ({ isTold, signal }) => {
  const one = callerWith(1n, "key");
  const pending = [{ ...one, call: { ...one.call, context: { ...one.call.context, signal } } }];
  const nowhere = new Session(readServerUrl("postgres://nobody@127.0.0.1:1/nothing"));
  const options = { setAside: failToSetAside, afterFault: true, answered: new AnsweredByKey(isTold ? pending : []) };
  await expect(runBatchWith(nowhere, pending, options)).resolves.toEqual([undefined]);
});

test("a batch that meets no fault reads no signal, which would create it", async () => {
  const url = await createPlants(1);
  const session = new Session(readServerUrl(url));
  const context = {
    get signal(): AbortSignal {
      throw new Error("the signal was read");
    },
  };
  const pending = [{ id: 1n, call: { ...deleteCall(), context }, resolve: () => {}, reject: () => {} }];
  await expect(runBatch(session, pending)).resolves.toEqual([true]);
  await session.close();
});

test.each([
  { name: "", token: undefined, refusal: away },
  { name: ", and is in doubt", token: randomUUID(), refusal: unknown },
])("a divided batch$name begins no other part once its time is over", async ({ token, refusal }) => {
  const url = await createPlants(8);
  await runSql(url, "CREATE TABLE beds (plant bigint REFERENCES plants (id))");
  await runSql(url, "INSERT INTO beds VALUES (2), (7)");
  const session = new Session(readServerUrl(url));
  const { taken, answers } = listenersOf(1n, 2n, 3n, 4n, 5n, 6n, 7n, 8n);
  const impatient = taken.map((one) => ({
    ...one,
    reject: (reason: unknown) => {
      one.reject(reason);
      // While the first quarter is under way, in its second half.
      session.untilMs = 0;
    },
  }));
  const options = { setAside: failToSetAside, token };
  await expect(runBatchWith(session, impatient, options)).resolves.toEqual([
    true,
    ...Array.from({ length: 7 }, () => undefined),
  ]);
  await session.close();
  expect(answers).toEqual([true, "the database keeps plant 2", ...Array<string>(6).fill(refusal)]);
  expect(await runSql(url, "SELECT plant_id FROM deletions")).toEqual([{ plant_id: "1" }]);
  expect(await runSql(url, "SELECT count(*) FROM plants")).toEqual([{ count: "7" }]);
});

test("a divided batch leaves callers that give up out of its other parts", async () => {
  const url = await createPlants(4);
  await runSql(url, "CREATE TABLE beds (plant bigint REFERENCES plants (id)); INSERT INTO beds VALUES (1)");
  const session = new Session(readServerUrl(url));
  const controller = new AbortController();
  const answers: unknown[] = [];
  const taken = [1n, 2n, 3n, 4n].map((id) => ({
    id,
    call: deleteCall(id === 4n ? { signal: controller.signal } : {}),
    resolve: () => {},
    reject: (reason: unknown) => {
      answers.push(ConnectError.from(reason).rawMessage);
      controller.abort("too late");
    },
  }));
  await expect(runBatch(session, taken)).resolves.toEqual([undefined, true, true, false]);
  await session.close();
  expect(answers).toEqual(["the database keeps plant 1", "too late"]);
  expect(await plantsOf(url)).toEqual(["1", "4"]);
});
