import { join } from "node:path";
import { Code, ConnectError } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { closing } from "../../../protoport/testing/src/closing.ts";
import { projectFolder } from "../../../protoport/testing/src/process/child-program.ts";
import { startNode } from "../../../protoport/testing/src/process/command-line.ts";
import { deleteApart, deleteCall } from "./delete-call.ts";
// oxfmt-ignore
import { type Calls, type OpenDurable, type OpenStore, type OpenWithDatabase, protections, type StoreDatabase
} from "./opened-store.ts";
import type { PlantStore } from "../../../src/service/plant-store.ts";

/** More deletions than a process acknowledges before it is killed. */
const killedPlants = 20_000;
/** The deletions that a process acknowledges before it is killed. */
const acknowledgedMin = 200;
/** More deletions than a queue accepts. */
const overflowingPlants = 18_000;

/** The error for every call that a store cannot process. */
export const unavailable: { readonly rawMessage: string; readonly code: Code } = {
  rawMessage: "the plant store cannot process the request at the moment",
  code: Code.Unavailable,
};

export type DurableFact =
  | "a reopened store"
  | "a killed store"
  | "deletion records"
  | "a queued deletion"
  | "a protected plant"
  | "a locked plant"
  | "a store without its tables";

/** The tests for a fact. @param calls - a call to each method that queries the store */
type FactTests = (open: OpenStore, calls: Calls) => void;

/** The facts about durable stores, with their tests. A store that lacks a fact states it. */
// oxfmt-ignore
export const durableFacts: readonly { readonly fact: DurableFact; readonly tests: FactTests }[] = [
  { fact: "a reopened store", tests: (open) => testReopened(reopening(open)) },
  { fact: "a killed store", tests: (open) => {
      testKilled(withDatabase(open));
      testRestarted(withDatabase(open));
    } },
  { fact: "deletion records", tests: (open) => testRetention(withDatabase(open)) },
  { fact: "a queued deletion", tests: (open) => testQueue(withDatabase(open)) },
  { fact: "a protected plant", tests: (open) => testProtected(withDatabase(open)) },
  { fact: "a locked plant", tests: (open) => testLocked(withDatabase(open)) },
  { fact: "a store without its tables", tests: (open, calls) => testUnavailable(withDatabase(open), calls) },
];

/** The facts that change or kill the store's database, which several tests or a pooler may share. */
export const factsOfOwnDatabase: readonly DurableFact[] = durableFacts
  .map(({ fact }) => fact)
  .filter((fact) => fact !== "a reopened store");

function reopening(open: OpenStore): OpenDurable {
  return async (plants) => {
    const { reopen, ...opened } = await open(plants);
    if (reopen === undefined) throw new Error("the store has no reopen, and does not state what it lacks");
    return { ...opened, reopen };
  };
}

function withDatabase(open: OpenStore): OpenWithDatabase {
  return async (plants) => {
    const { database, ...opened } = await reopening(open)(plants);
    if (database === undefined) throw new Error("the store has no database, and does not state what it lacks");
    return { ...opened, database };
  };
}

function testReopened(open: OpenDurable): void {
  test("keeps acknowledged deletions, and the outcomes for their idempotency keys", async () => {
    await using opened = await open([1n, 2n, 3n]);
    const keyed = deleteCall({ idempotencyKey: "key" });
    const outcomes = [opened.store.delete(1n, keyed), opened.store.delete(2n, deleteCall())];
    await expect(Promise.all(outcomes)).resolves.toEqual([true, true]);
    await opened.store.close();
    await using again = closing(await opened.reopen());
    const calls = [keyed, deleteCall(), deleteCall()];
    const repeated = Promise.all(calls.map((call, i) => again.delete(BigInt(i + 1), call)));
    await expect(repeated).resolves.toEqual([true, false, true]);
    expect(await opened.plants()).toEqual([]);
  });
}

/** Tests a store whose process and server are killed. */
export function testKilled(open: OpenWithDatabase): void {
  test("keeps every acknowledged deletion", async () => {
    await using opened = await open(Array.from({ length: killedPlants }, (_, i) => BigInt(i + 1)));
    await opened.store.close();
    const main = join(projectFolder, "test/support/plants/delete-until-killed.ts");
    const location = JSON.stringify(opened.database.location);
    await using deleting = startNode([main, location, String(killedPlants)], projectFolder);
    await deleting.find(new RegExp(`^${acknowledgedMin}$`, "m"));
    deleting.process.kill("SIGKILL");
    await opened.database.kill();
    await deleting.end();
    const acknowledged = deleting.stdout().split("\n").slice(0, -1).map(BigInt);
    await using again = closing(await opened.reopen());
    const remaining = new Set(await opened.plants());
    expect(acknowledged.filter((id) => remaining.has(id))).toEqual([]);
    expect(remaining.size).toBeGreaterThan(0);
    const [first = 0n] = acknowledged;
    await expect(again.delete(first, deleteCall({ idempotencyKey: `key-${first}` }))).resolves.toBe(true);
    await expect(again.delete(first, deleteCall())).resolves.toBe(false);
  });
}

function testRestarted(open: OpenWithDatabase): void {
  test("waits for the restart of its server", async () => {
    await using opened = await open([1n, 2n, 3n]);
    await opened.store.delete(1n, deleteCall());
    const restarted = opened.database.kill();
    const outcomes = Promise.all([1n, 2n, 3n].map((id) => opened.store.delete(id, deleteCall())));
    await restarted;
    await expect(outcomes).resolves.toEqual([false, true, true]);
    expect(opened.store.problem).toBeUndefined();
    expect(await opened.plants()).toEqual([]);
  });
}

function testQueue(open: OpenWithDatabase): void {
  test("the queue's limit is 16,384 deletions", async () => {
    await using opened = await open([]);
    expect(opened.store.waiting).toEqual({ forBatch: 0, maxForBatch: 16_384, forLock: 0 });
  });

  test("a cancelled call deletes nothing", async () => {
    // Each queue sends at most two concurrent batches. On Citus, the first three plants are on two workers.
    const others = Array.from({ length: 20 }, (_, i) => BigInt(i + 1));
    await using opened = await open([...others, 21n]);
    const controller = new AbortController();
    const results = await deleteApart(others, 3, (id) => opened.store.delete(id, deleteCall()));
    const sent = Promise.all(results);
    const failure = opened.store.delete(21n, deleteCall({ signal: controller.signal }));
    controller.abort(new ConnectError("too late", Code.DeadlineExceeded));
    await expect(failure).rejects.toMatchObject({ code: Code.DeadlineExceeded });
    await expect(sent).resolves.toEqual(others.map(() => true));
    expect(await opened.plants()).toEqual([21n]);
  });

  test("is not sent after a batch has failed", async () => {
    await using opened = await open([1n, 2n, 3n, 4n]);
    await opened.database.failDeletions();
    const remove = (id: bigint) => opened.store.delete(id, deleteCall());
    const results = await Promise.allSettled(await deleteApart([1n, 2n, 3n, 4n], 2, remove));
    expect(results).toEqual(results.map(() => ({ status: "rejected", reason: expect.objectContaining(unavailable) })));
    expect(opened.store.problem).toBeDefined();
    expect(await opened.plants()).toEqual([1n, 2n, 3n, 4n]);
  });

  test("an overflowing queue refuses deletions with a retry time", async () => {
    const ids = Array.from({ length: overflowingPlants }, (_, i) => BigInt(i + 1));
    await using opened = await open(ids);
    const { queues = 1 } = opened.database;
    const absent = Array.from({ length: overflowingPlants * (queues - 1) }, (_, i) => -BigInt(i + 1));
    const results = await Promise.all(
      [...ids, ...absent].map((id) =>
        opened.store.delete(id, deleteCall()).catch((reason: unknown) => ConnectError.from(reason)),
      ),
    );
    const refused = results.filter((outcome) => outcome instanceof ConnectError);
    expect(refused.length).toBeGreaterThan(0);
    for (const error of refused) {
      expect(error).toMatchObject({ code: Code.ResourceExhausted });
      expect(error.metadata.get("retry-after")).toBe("1");
    }
    expect(await opened.plants()).toEqual(ids.filter((_, i) => results[i] !== true));
  });
}

function testProtected(open: OpenWithDatabase): void {
  test.each(protections)("is kept by %s, and the other plants in its batch are deleted", async (way) => {
    const ids = Array.from({ length: 20 }, (_, i) => BigInt(i));
    const kept = [5n, 12n];
    await using opened = await open(ids);
    await opened.database.protect(way, kept);
    const refusal = expect.objectContaining({ code: Code.FailedPrecondition });
    await expect(opened.store.delete(5n, deleteCall())).rejects.toEqual(refusal);
    const results = await Promise.allSettled([...ids, 99n].map((id) => opened.store.delete(id, deleteCall())));
    expect(results).toEqual([
      ...ids.map((id) =>
        kept.includes(id) ? { status: "rejected", reason: refusal } : { status: "fulfilled", value: true },
      ),
      { status: "fulfilled", value: false },
    ]);
    expect(opened.store.problem).toBeUndefined();
    expect(await opened.plants()).toEqual(kept);
    const recorded = await opened.database.recorded();
    expect(recorded.toSorted((one, other) => Number(one - other))).toEqual(ids.filter((id) => !kept.includes(id)));
  });
}

function testLocked(open: OpenWithDatabase): void {
  const openLocked = async (plants: readonly bigint[], locked: readonly bigint[]) => {
    const opened = await open(plants);
    const unlock = await opened.database.lock?.(locked);
    if (unlock === undefined) throw new Error("the store's database has no lock, and does not state what it lacks");
    return { ...opened, unlock };
  };

  test("is deleted when unlocked, and delays no other deletion", async () => {
    await using opened = await openLocked([1n, 2n, 3n], [1n]);
    const locked = opened.store.delete(1n, deleteCall());
    const want = [true, true];
    await expect(Promise.all([2n, 3n].map((id) => opened.store.delete(id, deleteCall())))).resolves.toEqual(want);
    expect(await opened.plants()).toEqual([1n]);
    await opened.unlock();
    await expect(locked).resolves.toBe(true);
  });

  test("is deleted for only one of several waiting callers", async () => {
    await using opened = await openLocked([1n], [1n]);
    // The first ones are sent alone, and the others in one batch.
    const deletions = Array.from({ length: 5 }, () => opened.store.delete(1n, deleteCall()));
    await expect.poll(() => opened.store.waiting?.forLock).toBe(deletions.length);
    await opened.unlock();
    const outcomes = await Promise.all(deletions);
    expect(outcomes.filter(Boolean)).toEqual([true]);
    expect(await opened.plants()).toEqual([]);
  });
}

function testUnavailable(open: OpenWithDatabase, calls: Calls): void {
  test.each(Object.entries(calls))("hides the database's error from %s calls", async (_, call) => {
    await using opened = await open([3n]);
    await opened.database.run("DROP TABLE plants");
    await expect(call(opened.store)).rejects.toMatchObject(unavailable);
  });
}

/** The shortest time for which a store can keep records. */
const deletionsKeptMs = 3_600_000;
/** More days than {@link deletionsKeptMs}. */
const daysOld = 3;

const deleteWith = (store: PlantStore, id: bigint, idempotencyKey: string): Promise<boolean> =>
  store.delete(id, deleteCall({ idempotencyKey }));

/** Waits until a database has the records of these plants, and no others. A store drops records after it is open. */
async function untilRecorded(database: StoreDatabase, plants: readonly bigint[]): Promise<void> {
  await expect.poll(() => database.recorded()).toEqual(plants);
}

/** The facts about stores that keep deletion records for a limited time. */
export function testRetention(open: OpenWithDatabase): void {
  test("are dropped with their idempotency keys only after the retention time", async () => {
    await using opened = await open([1n, 2n, 3n, 4n, 5n]);
    await opened.store.delete(1n, deleteCall());
    await deleteWith(opened.store, 2n, "old");
    await opened.database.age(daysOld);
    await deleteWith(opened.store, 3n, "young");
    // A store may always keep the newest record.
    await opened.store.delete(4n, deleteCall());
    // The first store keeps records for 90 days.
    expect(await opened.database.recorded()).toEqual([1n, 2n, 3n, 4n]);
    await opened.store.close();
    await using again = closing(await opened.reopen({ deletionsKeptMs }));
    await untilRecorded(opened.database, [3n, 4n]);
    await opened.database.run("INSERT INTO plants VALUES (2), (3)");
    await expect(deleteWith(again, 3n, "young")).resolves.toBe(true);
    await expect(deleteWith(again, 2n, "old")).resolves.toBe(true);
    expect(await opened.plants()).toEqual([3n, 5n]);
  });

  test("are dropped after every start", async () => {
    await using opened = await open([1n, 2n, 3n, 12n, 13n]);
    await deleteWith(opened.store, 1n, "key");
    let { store } = opened;
    try {
      for (const id of [2n, 3n]) {
        await opened.database.age(daysOld);
        await store.delete(10n + id, deleteCall());
        await store.close();
        store = await opened.reopen({ deletionsKeptMs });
        await untilRecorded(opened.database, [10n + id]);
        await expect(deleteWith(store, id, "key")).resolves.toBe(true);
      }
      expect(await opened.plants()).toEqual([]);
    } finally {
      await store.close();
    }
  });

  test("free their idempotency keys for all open stores when they are dropped", async () => {
    await using opened = await open([1n, 2n, 3n]);
    await deleteWith(opened.store, 1n, "old");
    await opened.database.age(daysOld);
    await deleteWith(opened.store, 2n, "young");
    await using other = closing(await opened.reopen({ deletionsKeptMs }));
    await untilRecorded(opened.database, [2n]);
    await opened.database.run("INSERT INTO plants VALUES (1), (2)");
    await expect(deleteWith(opened.store, 1n, "old")).resolves.toBe(true);
    await expect(deleteWith(other, 1n, "old")).resolves.toBe(true);
    await expect(deleteWith(other, 2n, "young")).resolves.toBe(true);
    await expect(other.delete(1n, deleteCall({ idempotencyKey: "old", subject: "another" }))).rejects.toMatchObject({
      code: Code.AlreadyExists,
    });
    expect(await opened.plants()).toEqual([2n, 3n]);
  });
}
