import { join } from "node:path";
import { Code, ConnectError } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { projectFolder } from "../../../packages/testing/src/process/child-program.ts";
import { startNode } from "../../../packages/testing/src/process/command-line.ts";
import { deleteCall } from "./delete-call.ts";
import type { Calls, OpenDurable, OpenWithDatabase } from "./opened-store.ts";

/** More deletions than a process acknowledges before it is killed. */
const killedPlants = 20_000;

/** The deletions that a process acknowledges before it is killed. */
const acknowledgedMin = 200;

/** The error of every call that a store cannot process. */
export const unavailable: { readonly rawMessage: string; readonly code: Code } = {
  rawMessage: "the plant store cannot process the request at the moment",
  code: Code.Unavailable,
};

/** The facts about a store that is closed and opened again. */
export function testReopened(open: OpenDurable): void {
  test("has what it acknowledged, with idempotency keys' outcomes", async () => {
    await using opened = await open([1n, 2n, 3n]);
    const keyed = deleteCall({ idempotencyKey: "key" });
    const outcomes = [opened.store.delete(1n, keyed), opened.store.delete(2n, deleteCall())];
    await expect(Promise.all(outcomes)).resolves.toEqual([true, true]);
    await opened.store.close();
    const again = await opened.reopen();
    try {
      const calls = [keyed, deleteCall(), deleteCall()];
      const repeated = Promise.all(calls.map((call, i) => again.delete(BigInt(i + 1), call)));
      await expect(repeated).resolves.toEqual([true, false, true]);
      expect(await opened.plants()).toEqual([]);
    } finally {
      await again.close();
    }
  });
}

/** The facts about a store whose process and server are killed. */
export function testKilled(open: OpenWithDatabase): void {
  test("keeps every acknowledged deletion when the process and its server are killed", async () => {
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
    const again = await opened.reopen();
    try {
      const remaining = new Set(await opened.plants());
      expect(acknowledged.filter((id) => remaining.has(id))).toEqual([]);
      expect(remaining.size).toBeGreaterThan(0);
      const [first = 0n] = acknowledged;
      await expect(again.delete(first, deleteCall({ idempotencyKey: `key-${first}` }))).resolves.toBe(true);
      await expect(again.delete(first, deleteCall())).resolves.toBe(false);
    } finally {
      await again.close();
    }
  });
}

/** The facts about deletions that are queued, or refused by the database. */
export function testQueue(open: OpenWithDatabase): void {
  test("deletes nothing when its call is cancelled", async () => {
    await using opened = await open([1n, 2n, 3n]);
    const controller = new AbortController();
    // A store sends at most two batches at the same time.
    const sent = Promise.all([1n, 2n].map((id) => opened.store.delete(id, deleteCall())));
    const failure = opened.store.delete(3n, deleteCall({ signal: controller.signal }));
    controller.abort(new ConnectError("too late", Code.DeadlineExceeded));
    await expect(failure).rejects.toMatchObject({ code: Code.DeadlineExceeded });
    await expect(sent).resolves.toEqual([true, true]);
    expect(await opened.plants()).toEqual([3n]);
  });

  test("is not sent after a batch has failed", async () => {
    await using opened = await open([1n, 2n, 3n, 4n]);
    await opened.database.failDeletions();
    const results = await Promise.allSettled([1n, 2n, 3n, 4n].map((id) => opened.store.delete(id, deleteCall())));
    expect(results).toEqual(results.map(() => ({ status: "rejected", reason: expect.objectContaining(unavailable) })));
    expect(await opened.plants()).toEqual([1n, 2n, 3n, 4n]);
  });

  test("keeps its plant and gets a retry time when the queue overflows", async () => {
    const ids = Array.from({ length: 18_000 }, (_, i) => BigInt(i + 1));
    await using opened = await open(ids);
    const results = await Promise.all(
      ids.map((id) => opened.store.delete(id, deleteCall()).catch((reason: unknown) => ConnectError.from(reason))),
    );
    const refused = results.filter((outcome) => outcome instanceof ConnectError);
    expect(refused.length).toBeGreaterThan(0);
    for (const error of refused) {
      expect(error).toMatchObject({ code: Code.ResourceExhausted });
      expect(error.metadata.get("retry-after")).toBe("1");
    }
    expect(await opened.plants()).toEqual(ids.filter((_, i) => results[i] !== true));
  });

  test("is refused if another table references its plant, and others succeed", async () => {
    const ids = Array.from({ length: 20 }, (_, i) => BigInt(i));
    await using opened = await open(ids);
    await opened.database.run("CREATE TABLE beds (plant BIGINT REFERENCES plants (id))");
    await opened.database.run("INSERT INTO beds VALUES (5), (12)");
    const results = await Promise.allSettled([...ids, 99n].map((id) => opened.store.delete(id, deleteCall())));
    const refused = { status: "rejected", reason: expect.objectContaining({ code: Code.FailedPrecondition }) };
    expect(results).toEqual([
      ...ids.map((id) => (id === 5n || id === 12n ? refused : { status: "fulfilled", value: true })),
      { status: "fulfilled", value: false },
    ]);
    expect(opened.store.problem).toBeUndefined();
    expect(await opened.plants()).toEqual([5n, 12n]);
  });
}

/** The facts about each method of a store whose tables another program has dropped. */
export function testUnavailable(open: OpenWithDatabase, calls: Calls): void {
  test.each(Object.entries(calls))("rejects calls of %s without the error of the database", async (_, call) => {
    await using opened = await open([3n]);
    await opened.database.run("DROP TABLE plants");
    await expect(call(opened.store)).rejects.toMatchObject(unavailable);
  });
}
