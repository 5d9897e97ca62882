import { Code } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import type { PlantStore } from "../../../src/service/plant-store.ts";
import { deleteCall, deleteRetrying, refusalOf } from "./delete-call.ts";
import { type DurableFact, durableFacts, unavailable } from "./describe-durable-store.ts";
import type { Calls, OpenStore } from "./opened-store.ts";

const int64Min = -(2n ** 63n);
const maxInt64 = 2n ** 63n - 1n;
/** The scope of an idempotency key. With "a plant", test cases with one key for several plants are omitted. */
type KeyHoldsFor = "the store" | "a plant";

interface Exceptions {
  readonly keyHoldsFor?: KeyHoldsFor;
  /** The durable facts that the store does not promise, or that its test cannot show. */
  readonly lacks?: readonly DurableFact[];
}

/** The tests for each {@link PlantStore} member. A member without tests does not compile. */
// oxfmt-ignore
const testsOf: Readonly<Record<keyof PlantStore, (open: OpenStore, keyHoldsFor: KeyHoldsFor) => void>> = {
  delete: testDelete, close: testClose, problem: testProblem, isChecking: testIsChecking,
  needsRestart: testNeedsRestart, waiting: testWaiting, connections: testConnections, file: testFile,
};

/** A call to each method that queries the store. A method without a call does not compile. */
const askingCalls: Calls = { delete: (store) => store.delete(3n, deleteCall()) };

export function describePlantStore(open: OpenStore, { keyHoldsFor = "the store", lacks = [] }: Exceptions = {}): void {
  describe("a plant store", () => {
    for (const [member, tests] of Object.entries(testsOf)) describe(member, () => tests(open, keyHoldsFor));
    for (const { fact, tests } of durableFacts)
      if (!lacks.includes(fact)) describe(fact, () => tests(open, askingCalls));
  });
}

function testDelete(open: OpenStore, keyHoldsFor: KeyHoldsFor): void {
  const testOfStore = (name: string, run: () => Promise<void>): void => {
    if (keyHoldsFor === "the store") test(name, run);
  };
  test("deletes only the given plant", async () => {
    const ids = [int64Min, -2n, -1n, 0n, 1n, 2n ** 53n - 1n, 2n ** 53n, 2n ** 53n + 1n, maxInt64];
    await using opened = await open(ids);
    const remaining = new Set(ids);
    for (const id of [0n, 2n ** 53n, -1n, maxInt64, 1n, 2n ** 53n + 1n, int64Min, 2n ** 53n - 1n]) {
      await expect(opened.store.delete(id, deleteCall())).resolves.toBe(true);
      remaining.delete(id);
      expect(await opened.plants()).toEqual([...remaining]);
    }
  });

  test("returns false for a missing plant and for a repeated deletion", async () => {
    await using opened = await open([1n, 3n]);
    await expect(opened.store.delete(2n, deleteCall())).resolves.toBe(false);
    expect(await opened.plants()).toEqual([1n, 3n]);
    await opened.store.delete(1n, deleteCall());
    await expect(opened.store.delete(1n, deleteCall())).resolves.toBe(false);
    expect(await opened.plants()).toEqual([3n]);
  });

  test("returns false for ids beyond 64 bits, which are not truncated", async () => {
    await using opened = await open([1n, int64Min, maxInt64]);
    const ids = [2n ** 64n + 1n, 2n ** 63n, -(2n ** 63n) - 1n];
    const outcomes = Promise.all([...ids, 1n].map((id) => opened.store.delete(id, deleteCall())));
    await expect(outcomes).resolves.toEqual([false, false, false, true]);
    expect(await opened.plants()).toEqual([int64Min, maxInt64]);
  });

  test("returns true for exactly one among many concurrent deletions", async () => {
    await using opened = await open([7n]);
    const outcomes = await Promise.all(Array.from({ length: 500 }, () => deleteRetrying(opened.store, 7n)));
    expect(outcomes.filter((deleted) => deleted)).toHaveLength(1);
  });

  test("returns each call's outcome among many concurrent deletions", async () => {
    const existing = Array.from({ length: 3_000 }, (_, i) => BigInt(i * 2));
    await using opened = await open(existing);
    // Odd ids never existed. Every fourth id is not requested.
    const requested = Array.from({ length: 6_000 }, (_, i) => BigInt(i)).filter((id) => id % 4n !== 0n);
    const outcomes = await Promise.all(requested.map((id) => deleteRetrying(opened.store, id)));
    expect(outcomes).toEqual(requested.map((id) => id % 2n === 0n));
    expect(await opened.plants()).toEqual(existing.filter((id) => id % 4n === 0n));
  });

  test("distinguishes ids with any length in one batch", async () => {
    const powers = [10n ** 14n, 10n ** 15n, 10n ** 16n, 2n ** 53n, 2n ** 62n];
    const ids = powers.flatMap((power) => [power - 1n, power, power + 1n]).flatMap((id) => [id, -id]);
    const requested = [0n, ...ids, int64Min, maxInt64, int64Min + 1n, maxInt64 - 1n];
    const existing = requested.filter((_, i) => i % 3 !== 0).toSorted((a, b) => (a < b ? -1 : 1));
    await using opened = await open([1n, ...existing]);
    // While the first is committed, the others become one batch.
    const outcomes = await Promise.all([1n, ...requested].map((id) => opened.store.delete(id, deleteCall())));
    expect(outcomes).toEqual([true, ...requested.map((_, i) => i % 3 !== 0)]);
    expect(await opened.plants()).toEqual([]);
  });

  describe("an idempotency key", () => {
    test("makes repeated calls return the first call's outcome", async () => {
      await using opened = await open([1n, 2n]);
      const call = deleteCall({ idempotencyKey: "key" });
      for (let repeats = 0; repeats < 3; repeats++) await expect(opened.store.delete(1n, call)).resolves.toBe(true);
      expect(await opened.plants()).toEqual([2n]);
      // Without the key, or with another one, the plant is gone.
      await expect(opened.store.delete(1n, deleteCall())).resolves.toBe(false);
      await expect(opened.store.delete(1n, deleteCall({ idempotencyKey: "KEY" }))).resolves.toBe(false);
    });

    test.each([
      { name: "the same plant by another subject", id: 1n, subject: "Ann" },
      ...(keyHoldsFor === "a plant"
        ? []
        : [
            { name: "another existing plant", id: 2n, subject: "ann" },
            { name: "another missing plant", id: 9n, subject: "ann" },
            { name: "another plant by another subject", id: 2n, subject: "" },
          ]),
    ])("is refused for $name, and deletes nothing", async ({ id, subject }) => {
      await using opened = await open([1n, 2n]);
      const first = deleteCall({ idempotencyKey: "key", subject: "ann" });
      await opened.store.delete(1n, first);
      const refused = await refusalOf(opened.store.delete(id, deleteCall({ idempotencyKey: "key", subject })));
      expect(refused).toMatchObject({ code: Code.AlreadyExists });
      expect(refused.rawMessage).toBe("the idempotency key belongs to another deletion");
      await expect(opened.store.delete(1n, first)).resolves.toBe(true);
      expect(await opened.plants()).toEqual([2n]);
    });

    testOfStore("is unused after a call that found no plant", async () => {
      await using opened = await open([1n]);
      const call = deleteCall({ idempotencyKey: "key" });
      await expect(opened.store.delete(9n, call)).resolves.toBe(false);
      await expect(opened.store.delete(9n, call)).resolves.toBe(false);
      await expect(opened.store.delete(1n, call)).resolves.toBe(true);
      await expect(opened.store.delete(9n, call)).rejects.toMatchObject({ code: Code.AlreadyExists });
    });

    test("makes only one key's concurrent calls return true", async () => {
      await using opened = await open([7n]);
      const keys = Array.from({ length: 500 }, (_, i) => `key-${i % 5}`);
      const deletions = keys.map((idempotencyKey) => opened.store.delete(7n, deleteCall({ idempotencyKey })));
      const outcomes = await Promise.all(deletions);
      const [first] = keys.filter((_, i) => outcomes[i]);
      expect(outcomes).toEqual(keys.map((key) => key === first));
      expect(await opened.plants()).toEqual([]);
    });

    testOfStore("deletes only one plant if concurrent calls for many plants use it", async () => {
      const ids = Array.from({ length: 60 }, (_, i) => BigInt(i));
      await using opened = await open([...ids, 100n]);
      const before = opened.store.delete(100n, deleteCall());
      const call = deleteCall({ idempotencyKey: "key" });
      const outcomes = await Promise.allSettled(ids.map((id) => opened.store.delete(id, call)));
      await before;
      const remaining = await opened.plants();
      expect(remaining).toHaveLength(ids.length - 1);
      const refused = { status: "rejected", reason: expect.objectContaining({ code: Code.AlreadyExists }) };
      const performed = { status: "fulfilled", value: true };
      expect(outcomes).toEqual(ids.map((id) => (remaining.includes(id) ? refused : performed)));
    });

    testOfStore("deletes the existing plant if concurrent calls for two plants use it", async () => {
      await using opened = await open([1n, 2n]);
      const before = opened.store.delete(1n, deleteCall());
      const call = deleteCall({ idempotencyKey: "key" });
      const outcomes = Promise.allSettled([9n, 2n].map((id) => opened.store.delete(id, call)));
      await before;
      // Plant 9 is not found before plant 2 is deleted, or refused after.
      const absent = expect.toBeOneOf([
        { status: "fulfilled", value: false },
        { status: "rejected", reason: expect.objectContaining({ code: Code.AlreadyExists }) },
      ]);
      expect(await outcomes).toEqual([absent, { status: "fulfilled", value: true }]);
      expect(await opened.plants()).toEqual([]);
    });

    test("does not mix up outcomes among concurrent calls with and without keys", async () => {
      const existing = Array.from({ length: 1_500 }, (_, i) => BigInt(i * 2));
      await using opened = await open(existing);
      const requested = Array.from({ length: 3_000 }, (_, i) => BigInt(i));
      const ask = (): Promise<unknown> =>
        Promise.all(
          requested.map((id) =>
            deleteRetrying(opened.store, id, deleteCall(id % 3n === 0n ? {} : { idempotencyKey: `key-${String(id)}` })),
          ),
        );
      expect(await ask()).toEqual(requested.map((id) => id % 2n === 0n));
      expect(await opened.plants()).toEqual([]);
      // Repeated calls with keys get the same outcomes.
      expect(await ask()).toEqual(requested.map((id) => id % 2n === 0n && id % 3n !== 0n));
    });

    test("may contain any characters", async () => {
      const keys = ['a"b\\c,{}', "NULL", "null", "{}", "'; --", "k".repeat(128)];
      const ids = keys.map((_, i) => BigInt(i));
      const alone = ids.map((id) => id + 100n);
      await using opened = await open([...ids, ...alone, 200n]);
      const before = opened.store.delete(200n, deleteCall());
      const calls = keys.map((idempotencyKey) => deleteCall({ idempotencyKey }));
      const withKeys = (): Promise<boolean[]> =>
        Promise.all(calls.map((call, i) => opened.store.delete(BigInt(i), call)));
      // In one batch with deletions without a key, and with the same calls again.
      const outcomes = [withKeys(), Promise.all(alone.map((id) => opened.store.delete(id, deleteCall()))), withKeys()];
      await before;
      await expect(Promise.all(outcomes)).resolves.toEqual(outcomes.map(() => keys.map(() => true)));
      await expect(withKeys()).resolves.toEqual(keys.map(() => true));
    });
  });
}

function testClose(open: OpenStore): void {
  test("finishes accepted deletions", async () => {
    await using opened = await open([1n, 2n, 3n]);
    const accepted = Promise.all([1n, 2n, 9n].map((id) => opened.store.delete(id, deleteCall())));
    await opened.store.close();
    await expect(accepted).resolves.toEqual([true, true, false]);
    // Closing twice does no harm.
    await expect(opened.store.close()).resolves.toBeUndefined();
  });

  test.each(Object.entries(askingCalls))("makes %s calls fail while closing and afterwards", async (_, call) => {
    await using opened = await open([3n]);
    const closed = opened.store.close();
    await expect(call(opened.store)).rejects.toMatchObject(unavailable);
    await closed;
    await expect(call(opened.store)).rejects.toMatchObject(unavailable);
    expect(await opened.plants()).toEqual([3n]);
  });
}

function testProblem(open: OpenStore): void {
  test("the problem is undefined until the store is closed", async () => {
    await using opened = await open([1n]);
    expect(opened.store.problem).toBeUndefined();
    await opened.store.delete(1n, deleteCall());
    expect(opened.store.problem).toBeUndefined();
    await opened.store.close();
    expect(opened.store.problem).toMatch(/closed/);
  });
}

function testIsChecking(open: OpenStore): void {
  test("isChecking is false after a deletion", async () => {
    await using opened = await open([1n]);
    await opened.store.delete(1n, deleteCall());
    expect(opened.store.isChecking ?? false).toBe(false);
  });
}

function testNeedsRestart(open: OpenStore): void {
  test("needsRestart is false while there is no problem", async () => {
    await using opened = await open([1n]);
    await opened.store.delete(1n, deleteCall());
    expect(opened.store.needsRestart ?? false).toBe(false);
  });
}

function testWaiting(open: OpenStore): void {
  test("counts queued deletions until they are settled", async () => {
    await using opened = await open([1n, 2n, 3n]);
    const idle = { forBatch: 0, maxForBatch: expect.any(Number), forLock: 0 };
    const hasQueue = opened.store.waiting !== undefined;
    if (hasQueue) expect(opened.store.waiting).toEqual(idle);
    const deleting = Array.from({ length: 100 }, (_, i) => opened.store.delete(BigInt(i), deleteCall()));
    // The first is being sent, with as many as a store sends before a response.
    expect(opened.store.waiting?.forBatch ?? 0).toSatisfy((count: number) => (hasQueue ? count > 0 : count === 0));
    await Promise.all(deleting);
    expect(opened.store.waiting).toEqual(hasQueue ? idle : undefined);
  });
}

const healthy = { hasSecondName: false, areCheckpointsStalled: false };

function testFile(open: OpenStore): void {
  test("the store's file has a single name and working checkpoints", async () => {
    await using opened = await open([1n]);
    expect(opened.store.file ?? healthy).toEqual(healthy);
  });
}

function testConnections(open: OpenStore): void {
  test("connections are unused when no deletion is running", async () => {
    await using opened = await open([1n]);
    await opened.store.delete(1n, deleteCall());
    // A health check may use one meanwhile.
    await expect.poll(() => opened.store.connections?.used ?? 0).toBe(0);
  });
}
