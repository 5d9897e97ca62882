import { randomUUID } from "node:crypto";
import { describe, expect, test } from "vitest";
import { BatchFailure } from "../../../../../../src/stores/postgres/delete/run-batch.ts";
import { backoffMs } from "../../../../../../src/stores/postgres/server/retry-transient-errors.ts";
import { readServerUrl } from "../../../../../../src/stores/postgres/server/server-url.ts";
import { Session } from "../../../../../../src/stores/postgres/server/session.ts";
import { deleteCall } from "../../../../../support/plants/delete-call.ts";
import { countAttempts, failAlways, failAttempts } from "../../../../../support/plants/failing-attempts.ts";
import { runSql, withoutStandby } from "../../../../../support/plants/postgres-server.ts";
import {
  runBatchWith,
  runBatch,
  failToDefer,
  callersOf,
  callerWith,
  listenersOf,
  plantsOf,
  sentDeletion,
} from "../../../../../support/plants/run-batch.ts";
import { createPlantsUpTo, startPostgresOfFile } from "../../../../../support/plants/postgres-of-file.ts";

const away = "the plant store cannot process the request at the moment";
const unknown = "the outcome of the deletion is unknown; repeating the request is safe";

const server = await startPostgresOfFile(["-c", "deadlock_timeout=50ms"]);

describe("a batch that fails", () => {
  test.each([
    { sqlStates: ["40001", "40P01", "55P03"], connection: "its connection" },
    { sqlStates: ["57014"], connection: "its connection" },
    { sqlStates: ["53100", "53200"], connection: "its connection" },
    { sqlStates: ["57P03"], connection: "a new connection" },
    { sqlStates: ["53300", "25006", "25P03", "25P04"], connection: "a new connection" },
    { sqlStates: ["XX000"], connection: "a new connection" },
    { sqlStates: ["08006", "57P01"], connection: "a new connection" },
    { sqlStates: ["40003"], connection: "a new connection" },
  ])("with $sqlStates is retried on $connection until it succeeds", async ({ sqlStates, connection }) => {
    const url = await createPlantsUpTo(server, 3);
    await failAttempts(url, "DELETE ON plants", sqlStates);
    const session = new Session(readServerUrl(url));
    const [before] = await session.query("SELECT pg_backend_pid()");
    await expect(runBatch(session, callersOf(1n, 2n, 9n))).resolves.toEqual([true, true, false]);
    const [after] = await session.query("SELECT pg_backend_pid()");
    await session.close();
    expect(after?.[0] === before?.[0]).toBe(connection === "its connection");
    expect(await countAttempts(url)).toBe(sqlStates.length + 1);
    expect(await plantsOf(url)).toEqual(["3"]);
  });

  // The reported outcome must be correct, and `server` determines readiness.
  test.each([
    { sqlStates: ["42P01"], outcome: "unavailable", server: "refusing" },
    { sqlStates: ["57014", "42P01"], outcome: "unavailable", server: "refusing" },
    { sqlStates: ["XX000", "42P01"], outcome: "unknown", server: "refusing" },
    { sqlStates: ["XX000", "40001", "53100", "42P01"], outcome: "unknown", server: "refusing" },
  ])('with $sqlStates reports "$outcome" and stops retrying', async ({ sqlStates, ...failure }) => {
    const url = await createPlantsUpTo(server, 2);
    await failAttempts(url, "DELETE ON plants", sqlStates);
    const session = new Session(readServerUrl(url));
    await expect(runBatch(session, callersOf(1n, 2n))).rejects.toMatchObject({
      ending: { outcome: failure.outcome },
      server: failure.server,
    });
    await session.close();
    expect(await countAttempts(url)).toBe(sqlStates.length);
    expect(await plantsOf(url)).toEqual(["1", "2"]);
  });

  test.each([
    { sqlState: "40001", outcome: "unavailable", server: "busy" },
    { sqlState: "53100", outcome: "unavailable", server: "unavailable" },
    { sqlState: "57P03", outcome: "unavailable", server: "unavailable" },
    { sqlState: "25P04", outcome: "unavailable", server: "unavailable" },
    { sqlState: "XX000", outcome: "unknown", server: "unavailable" },
  ])('reports "$outcome" after its deadline if each retry fails with $sqlState', async ({ sqlState, ...failure }) => {
    const url = await createPlantsUpTo(server, 2);
    await failAttempts(url, "DELETE ON plants", Array<string>(1_000).fill(sqlState));
    const session = new Session(readServerUrl(url));
    const ended = expect(runBatch(session, callersOf(1n, 2n))).rejects.toMatchObject({
      ending: { outcome: failure.outcome },
      server: failure.server,
    });
    await expect.poll(() => countAttempts(url)).toBeGreaterThan(0);
    session.deadlineMs = 0;
    await ended;
    await session.close();
    expect(await plantsOf(url)).toEqual(["1", "2"]);
  });

  test.each([
    { name: "the server is unreachable", arrange: () => server.stop("fast"), user: "tester" },
    { name: "the server refuses the user", arrange: () => Promise.resolve(), user: "nobody" },
  ])("because $name rejects its calls as not processed", async ({ arrange, user }) => {
    const url = await createPlantsUpTo(server, 1);
    await arrange();
    const session = new Session(readServerUrl(url.replace("user=tester", `user=${user}`)));
    // A refused user fails immediately, without retries until the deadline.
    if (user === "tester") session.deadlineMs = 0;
    await expect(runBatch(session, callersOf(1n))).rejects.toMatchObject({
      ending: { outcome: "unavailable" },
      server: user === "tester" ? "unavailable" : "refusing",
    });
  });

  // While plants are locked, batches skip locks.
  test.each([
    { sqlStates: ["40001"], ended: [true, true], attempts: 2 },
    { sqlStates: ["53100"], ended: [true, true], attempts: 2 },
    { sqlStates: ["XX000"], ended: [true, true], attempts: 2 },
    { sqlStates: ["P0001"], ended: [true, true], attempts: 3 },
    { sqlStates: ["42P01"], ended: "refusing", attempts: 1 },
  ])(
    "with $sqlStates ends after attempt $attempts when it skips locked plants",
    async ({ sqlStates, ended, attempts }) => {
      const url = await createPlantsUpTo(server, 2);
      await failAttempts(url, "DELETE ON plants", sqlStates);
      const session = new Session(readServerUrl(url));
      const options = { defer: failToDefer, isCareful: true };
      const running = runBatchWith(session, callersOf(1n, 2n), options);
      await expect(running.catch((fault: unknown) => fault instanceof BatchFailure && fault.server)).resolves.toEqual(
        ended,
      );
      await session.close();
      expect(await countAttempts(url)).toBe(attempts);
    },
  );

  test("deletes nothing if the key lookup on its retry fails", async () => {
    const url = await createPlantsUpTo(server, 1);
    await failAttempts(url, "UPDATE ON deletions", ["XX000", "42P01"]);
    const session = new Session(readServerUrl(url));
    const options = { defer: failToDefer, isCareful: true };
    await expect(runBatchWith(session, [callerWith(1n, "key")], options)).rejects.toMatchObject({
      ending: { outcome: "unavailable" },
      server: "refusing",
    });
    await session.close();
    expect(await plantsOf(url)).toEqual(["1"]);
  });

  test("is not retried after all its calls are cancelled", async () => {
    const url = await createPlantsUpTo(server, 1);
    await failAttempts(url, "DELETE ON plants", ["40001"]);
    const session = new Session(readServerUrl(url));
    const controller = new AbortController();
    const call = deleteCall({ signal: controller.signal });
    const deletions = [sentDeletion(1n, call)];
    const outcomes = runBatch(session, deletions);
    // The statement's parameters are already written.
    controller.abort("too late");
    await expect(outcomes).rejects.toMatchObject({ server: "healthy" });
    await session.close();
    expect(await countAttempts(url)).toBe(1);
  });

  test("is retried with growing pauses", async () => {
    const url = await createPlantsUpTo(server, 1);
    await failAttempts(url, "DELETE ON plants", Array<string>(1_000).fill("40001"));
    const session = new Session(readServerUrl(url));
    // A second is reserved for the last attempt and its cancellation.
    session.deadlineMs = performance.now() + 1_300;
    await expect(runBatch(session, callersOf(1n))).rejects.toMatchObject({ server: "busy" });
    await session.close();
    // With pauses that double from 5 ms to a second there are about ten attempts; without pauses, hundreds.
    expect(await countAttempts(url)).toBeLessThan(16);
  });

  test.each([
    { attempts: 0, pauseMsMax: 5 },
    { attempts: 3, pauseMsMax: 40 },
    { attempts: 100, pauseMsMax: 1_000 },
  ])("pauses for a random time of up to $pauseMsMax ms after $attempts attempts", ({ attempts, pauseMsMax }) => {
    const pauses = Array.from({ length: 100 }, () => backoffMs(attempts));
    expect(Math.max(...pauses)).toBeLessThan(pauseMsMax);
    expect(Math.max(...pauses)).toBeGreaterThan(pauseMsMax / 2);
    expect(Math.min(...pauses)).toBeLessThan(pauseMsMax / 2);
  });
});

describe("a batch that the server refuses", () => {
  // The first entry is for the whole batch, the next for its first half.
  test.each([
    {
      sqlStates: ["P0001", "42P01"],
      result: "abandoned",
      results: [undefined, undefined, undefined, undefined],
      attempts: 2,
    },
    { sqlStates: ["P0001", "XX000", "P0001"], result: "done", results: [true, true, true, true], attempts: 6 },
    // If a part in doubt is refused, its plants and records are looked up.
    {
      sqlStates: ["XX000", "23503", "23503", "23503"],
      result: "done",
      results: ["the database does not allow deleting plant 1", true, true, true],
      attempts: 6,
    },
    { sqlStates: ["XX000", "P0001", "42P01"], result: "abandoned", results: Array(4).fill(undefined), attempts: 3 },
    { sqlStates: ["3F000", "3F000", "3F000"], result: "done", results: [away, true, true, true], attempts: 5 },
    // If a trigger fails for a part in doubt, it is not known whether the earlier attempt has deleted its plant.
    {
      sqlStates: ["XX000", "3F000", "3F000", "3F000"],
      result: "done",
      results: [unknown, true, true, true],
      attempts: 6,
    },
    {
      sqlStates: ["23503", "23503", "23503"],
      result: "done",
      results: ["the database does not allow deleting plant 1", true, true, true],
      attempts: 5,
    },
  ])(
    "with $sqlStates is split, and then $result (attempts: $attempts)",
    async ({ sqlStates, result, results, attempts }) => {
      const url = await createPlantsUpTo(server, 4);
      await failAttempts(url, "DELETE ON plants", sqlStates);
      const session = new Session(readServerUrl(url));
      const listeners = listenersOf(1n, 2n, 3n, 4n);
      const ended = await runBatch(session, listeners.deletions).then(
        () => "done",
        () => "abandoned",
      );
      await session.close();
      expect(ended).toBe(result);
      expect(listeners.results).toEqual(results);
      expect(await countAttempts(url)).toBe(attempts);
      // The reported outcomes match the database.
      expect(await plantsOf(url)).toEqual(["1", "2", "3", "4"].filter((_, i) => results[i] !== true));
    },
  );
});

test("a batch records only a plant's first deletion", async () => {
  const url = await createPlantsUpTo(server, 3);
  const session = new Session(readServerUrl(url));
  const deletions = [1n, 2n, 1n, 1n].map((id, i) => sentDeletion(id, deleteCall({ subject: `caller-${i}` })));
  await expect(runBatch(session, deletions)).resolves.toEqual([true, true, false, false]);
  await session.close();
  expect(await runSql(url, "SELECT plant_id, subject FROM deletions ORDER BY plant_id")).toEqual([
    { plant_id: "1", subject: "caller-0" },
    { plant_id: "2", subject: "caller-1" },
  ]);
});

// A lookup is a write, so it could fail although the deletion is committed.
test.each(["RETURN NULL", "RAISE 'no'", "RAISE 'no' USING ERRCODE = '55P03'"])(
  'a record trigger with "%s" does not affect a successful batch',
  async (statement) => {
    const url = await createPlantsUpTo(server, 2);
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

test.each([
  { name: "is refused", sqlStates: [], ends: "the database does not allow deleting plant 2" },
  { name: "fails", sqlStates: ["", "42P01"], ends: undefined },
])("a batch whose next attempt $name looks up no records", async ({ sqlStates, ends }) => {
  const url = await createPlantsUpTo(server, 3);
  await failAlways(url, "UPDATE ON deletions", "P0001");
  await failAttempts(url, "DELETE ON plants", sqlStates);
  await runSql(
    url,
    `CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;
     CREATE TRIGGER keep BEFORE DELETE ON plants FOR EACH ROW WHEN (OLD.id = 2) EXECUTE FUNCTION keep()`,
  );
  const session = new Session(readServerUrl(url));
  const { deletions, results } = listenersOf(1n, 2n, 3n, 1n, 2n, 9n);
  const outcomes = await runBatch(session, deletions).catch(({ server: state }: BatchFailure) => state);
  await session.close();
  expect(outcomes).toEqual(ends === undefined ? "refusing" : [true, undefined, true, false, undefined, false]);
  expect(results).toEqual([true, ends, true, false, ends, false]);
});

test("a batch with a cancelled call reports a kept plant as protected", async () => {
  const url = await createPlantsUpTo(server, 1);
  await runSql(
    url,
    `CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;
     CREATE TRIGGER keep BEFORE DELETE ON plants FOR EACH ROW EXECUTE FUNCTION keep()`,
  );
  const session = new Session(readServerUrl(url));
  const call = deleteCall({ signal: AbortSignal.abort("gone") });
  const { deletions, results } = listenersOf(1n);
  const batch = [sentDeletion(1n, call), ...deletions];
  await expect(runBatch(session, batch)).resolves.toEqual([undefined, undefined]);
  await session.close();
  expect(results).toEqual(["the database does not allow deleting plant 1"]);
});

test("a batch without standbys reports a missing plant without a write", async () => {
  const url = await createPlantsUpTo(server, 1);
  await runSql(
    url,
    `CREATE FUNCTION pg_logical_emit_message(boolean, text, text) RETURNS text LANGUAGE plpgsql AS
       $$ BEGIN RAISE 'No space left on device' USING ERRCODE = '53100'; END $$`,
  );
  // The schema's functions take precedence over the server's.
  const session = new Session(readServerUrl(`${url}%2Cpg_catalog`));
  await expect(runBatch(session, callersOf(9n))).resolves.toEqual([false]);
  await session.close();
});

// The plant may be missing only on this server, because it was deleted and the standbys do not know it yet.
test.each([
  { name: "waits for locks", options: {} },
  { name: "skips locked plants", options: { isCareful: true } },
  { name: "is refused in doubt", options: { token: randomUUID() }, refusal: "P0001" },
])("a batch that $name reports missing plants only after the standbys confirm", async ({ options, refusal }) => {
  const url = await createPlantsUpTo(server, 1);
  if (refusal !== undefined) await failAttempts(url, "DELETE ON plants", [refusal]);
  const session = new Session(readServerUrl(url));
  let outcomes: ReturnType<typeof runBatch> | undefined;
  await withoutStandby(url, async () => {
    await expect.poll(() => session.query("SHOW synchronous_standby_names")).toEqual([["nobody"]]);
    outcomes = runBatchWith(session, callersOf(9n), { defer: failToDefer, ...options });
    const isSettled = outcomes.then(() => true);
    const waits = expect
      .poll(() => runSql(url, "SELECT FROM pg_stat_activity WHERE wait_event = 'SyncRep'"))
      .toHaveLength(1);
    expect(await Promise.race([isSettled, waits.then(() => false)])).toBe(false);
  });
  await expect(outcomes).resolves.toEqual([false]);
  await session.close();
});

test("a batch excludes cancelled calls from later attempts and rejects them", async () => {
  const url = await createPlantsUpTo(server, 3);
  await server.stop("fast");
  const session = new Session(readServerUrl(url));
  const controller = new AbortController();
  const results: unknown[] = [];
  const calls = [deleteCall(), deleteCall({ signal: controller.signal }), deleteCall()];
  const deletions = calls.map((call, i) =>
    sentDeletion(BigInt(i + 1), call, undefined, (reason) => results.push(reason)),
  );
  const outcomes = runBatch(session, deletions);
  // The server takes longer to start than a connection to a socket without a listener takes to fail.
  controller.abort("too late");
  await server.start();
  await expect(outcomes).resolves.toEqual([true, undefined, true]);
  expect(new Set(results)).toEqual(new Set(["too late"]));
  await session.close();
  expect(await plantsOf(url)).toEqual(["2"]);
});

test("a batch that skips locked plants sends nothing for cancelled calls", async () => {
  const call = deleteCall({ signal: AbortSignal.abort() });
  const pending = [sentDeletion(1n, call)];
  const nowhere = new Session(readServerUrl("postgres://nobody@127.0.0.1:1/nothing"));
  const options = { defer: failToDefer, isCareful: true };
  await expect(runBatchWith(nowhere, pending, options)).resolves.toEqual([undefined]);
});

test("a batch without errors does not read its calls' signals", async () => {
  const url = await createPlantsUpTo(server, 1);
  const session = new Session(readServerUrl(url));
  const context = {
    get signal(): AbortSignal {
      throw new Error("the signal was read");
    },
  };
  const pending = [sentDeletion(1n, { ...deleteCall(), context })];
  await expect(runBatch(session, pending)).resolves.toEqual([true]);
  await session.close();
});
