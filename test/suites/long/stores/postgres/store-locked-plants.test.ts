import { isDeepStrictEqual } from "node:util";
import { Code, ConnectError } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { closing } from "@protoport/testing/process";
import type { PlantStore } from "../../../../../src/service/plant-store.ts";
import { openPostgresStore, watchIntervalMs } from "../../../../../src/stores/postgres/postgres-store.ts";
// oxfmt-ignore
import { countAttempts, deleteApart, deleteCall, failAttempts, openClient, openStoreWith, runSql, startPostgresOfFile,
  startPostgresProxy } from "../../../../support/plants/index.ts";

const server = await startPostgresOfFile();

describe("a PostgreSQL store with locked plants", () => {
  test("does not delay other deletions while a plant is locked", async () => {
    await using opened = await openStoreWith(server, [1n, 2n, 3n, 4n, 5n]);
    const other = await openClient(opened.url, "BEGIN; SELECT FROM plants WHERE id IN (1, 2) FOR UPDATE");
    const order: string[] = [];
    const ask = (id: bigint): Promise<void> =>
      opened.store.delete(id, deleteCall()).then(
        (deleted) => void order.push(`${id}: ${deleted}`),
        ({ code }) => void order.push(`${id}: ${Code[code]}`),
      );
    // Each plant is deleted twice, once alone, once in a batch.
    const locked = await deleteApart([1n, 2n, 1n, 2n], 2, ask);
    await Promise.all([3n, 4n, 9n].map(ask));
    await ask(5n);
    expect(order.toSorted()).toEqual(["3: true", "4: true", "5: true", "9: false"]);
    await Promise.all(locked);
    expect(order.slice(4).toSorted()).toEqual(["1: Unavailable", "1: Unavailable", "2: Unavailable", "2: Unavailable"]);
    expect(opened.store.problem).toBeUndefined();
    // If the machine stalls for long, the deletion fails with Unavailable and nothing was done, so it is repeated.
    const askUntilTold = (id: bigint): Promise<boolean> =>
      opened.store.delete(id, deleteCall()).catch(() => askUntilTold(id));
    const again = await deleteApart([1n, 2n, 1n], 1, askUntilTold);
    await expect(opened.store.delete(9n, deleteCall())).resolves.toBe(false);
    await expect.poll(() => opened.store.waiting?.forLock).toBe(3);
    await other.query("COMMIT");
    // One of the two callers for plant 1 deleted the plant.
    expect((await Promise.all(again)).filter(Boolean)).toHaveLength(2);
    await expect.poll(() => opened.store.waiting).toEqual({ forBatch: 0, maxForBatch: 16_384, forLock: 0 });
    expect(await opened.plants()).toEqual([]);
    expect(await runSql(opened.url, "SELECT count(*) FROM deletions")).toEqual([{ count: "5" }]);
    await other.end();
  });

  test("does not delete a deferred plant after its batch has failed", async () => {
    await using opened = await openStoreWith(server, [1n, 2n, 3n, 4n]);
    const other = await openClient(opened.url, "BEGIN; SELECT FROM plants WHERE id = 1 FOR UPDATE");
    // The batch is split, and its second half fails temporarily, then permanently.
    const busy = Array<string>(8).fill("40001");
    await failAttempts(opened.url, "DELETE ON plants", ["P0001", ...busy, "42P01"], 3n);
    // Plants 7 and 8 are separate batches, and the others wait.
    const results = await deleteApart([7n, 8n, 1n, 2n, 3n, 4n], 2, (id) =>
      opened.store.delete(id, deleteCall()).catch((fault: unknown) => ConnectError.from(fault).rawMessage),
    );
    // Plant 1 is deferred by now, and unlocked.
    await expect(results[3]).resolves.toBe(true);
    await other.query("COMMIT");
    const away = "the plant store cannot process the request at the moment";
    await expect(Promise.all(results)).resolves.toEqual([false, false, away, true, away, away]);
    expect(await opened.plants()).toEqual([1n, 3n, 4n]);
    expect(await countAttempts(opened.url)).toBe(10);
    await other.end();
  });

  test("reports an unknown outcome if a batch's other half is refused", async () => {
    await using opened = await openStoreWith(server, [1n, 2n]);
    // There are two batches with one deletion, and one batch with two that is split. The response for its first half is
    // lost, and the retry skips the plant. The second half is refused.
    await failAttempts(opened.url, "DELETE ON plants", ["", "", "P0001", "40003", "", "42P01"]);
    const sql = `CREATE TABLE gate ();
       INSERT INTO gate DEFAULT VALUES;
       CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
         WHILE EXISTS (SELECT FROM gate) LOOP PERFORM pg_sleep(0.005); END LOOP;
         RETURN NULL;
       END $$;
       CREATE TRIGGER wait AFTER DELETE ON plants EXECUTE FUNCTION wait()`;
    await runSql(opened.url, sql);
    const other = await openClient(opened.url, "BEGIN; SELECT FROM plants WHERE id = 1 FOR UPDATE");
    const results = await deleteApart([7n, 8n, 1n, 2n], 2, (id) =>
      opened.store.delete(id, deleteCall()).catch((fault: unknown) => ConnectError.from(fault).rawMessage),
    );
    await expect.poll(() => countAttempts(opened.url)).toBe(2);
    await runSql(opened.url, "DELETE FROM gate");
    await expect(Promise.all(results)).resolves.toEqual([
      false,
      false,
      "the outcome of the deletion is unknown; repeating the request is safe",
      "the plant store cannot process the request at the moment",
    ]);
    expect(await countAttempts(opened.url)).toBe(6);
    await other.end();
  });

  test("uses few connections for many deletions, and reports each batch", async () => {
    const batches: unknown[] = [];
    const ids = Array.from({ length: 20 }, (_, i) => BigInt(i));
    await using opened = await openStoreWith(server, ids);
    const onBatch = (calls: readonly unknown[]) => {
      batches.push(calls.length);
      return (error?: unknown) => batches.push(error);
    };
    const begunMs = performance.now();
    await using store = closing(await openPostgresStore({ url: `${opened.url}&application_name=few`, onBatch }));
    for (let id = 0n; id < 20n; id++) await expect(store.delete(id, deleteCall())).resolves.toBe(true);
    // The deletions' connection, and perhaps a health check's. Retention closes its connection soon.
    const most = performance.now() - begunMs < watchIntervalMs ? 1 : 2;
    const connections = "SELECT FROM pg_stat_activity WHERE application_name = 'few'";
    await expect.poll(async () => (await runSql(opened.url, connections)).length).toBeLessThanOrEqual(most);
    expect(batches).toEqual(Array.from({ length: 20 }, () => [1, undefined]).flat());
  });

  test("settles a locked plant's deletion when it is closed", async () => {
    await using opened = await openStoreWith(server, [1n]);
    const other = await openClient(opened.url, "BEGIN; SELECT FROM plants FOR UPDATE");
    const codes: unknown[] = [];
    const outcome = opened.store.delete(1n, deleteCall()).catch(({ code }) => void codes.push(code));
    await opened.store.close();
    // The deletion is settled once the store is closed.
    expect(codes).toEqual([Code.Unavailable]);
    await outcome;
    await other.end();
    expect(await opened.plants()).toEqual([1n]);
  });

  /** Unlocks a deletion's plant while the store closes. Returns the outcome, and the remaining connections. */
  async function closeWhileLocked(): Promise<unknown> {
    await using opened = await openStoreWith(server, [1n]);
    let connections = 0;
    let store: PlantStore | undefined;
    let problem: string | undefined;
    await using proxy = await startPostgresProxy(server.socketFolder, (client, upstream) => {
      connections++;
      client.on("close", () => {
        connections--;
        problem = store?.problem?.replace(/.*: /, "");
      });
      client.pipe(upstream).pipe(client);
    });
    store = await openPostgresStore({ url: opened.url.replace(server.socketFolder, proxy.socketFolder) });
    const other = await openClient(opened.url, "BEGIN; SELECT FROM plants FOR UPDATE");
    const outcome = store.delete(1n, deleteCall()).catch(({ code }) => code);
    const closed = store.close();
    await expect.poll(() => store.waiting?.forLock).toBe(1);
    await other.query("COMMIT");
    await closed;
    const remaining = connections;
    await other.end();
    return { outcome: await outcome, remaining, problem };
  }

  test("deletes unlocked plants before it closes, then closes its connections", async () => {
    // After the store is closed, no health check opens another connection.
    const ended = { outcome: true, remaining: 0, problem: "the store is closed" };
    // If the machine stalls, the plant is unlocked too late or a connection times out, and the test is repeated.
    let found: unknown;
    for (let rounds = 0; !isDeepStrictEqual(found, ended) && rounds < 5; rounds++) found = await closeWhileLocked();
    expect(found).toEqual(ended);
  });

  test.each([
    { lacking: "DELETE on plants", sql: "REVOKE DELETE ON plants FROM clerk" },
    { lacking: "UPDATE on deletions", sql: "REVOKE UPDATE ON deletions FROM clerk" },
    { lacking: "INSERT on deletions", sql: "REVOKE INSERT ON deletions FROM clerk" },
  ])("requires the privilege $lacking to open, and reports its loss later", async ({ lacking, sql }) => {
    await using opened = await openStoreWith(server, [1n]);
    const schema = /plants_\d+/.exec(opened.url)?.[0];
    await runSql(
      opened.url,
      `DROP ROLE IF EXISTS clerk; CREATE ROLE clerk LOGIN; GRANT USAGE ON SCHEMA ${schema} TO clerk;
       GRANT ALL ON ALL TABLES IN SCHEMA ${schema} TO clerk`,
    );
    const url = opened.url.replace("user=tester", "user=clerk");
    const store = await openPostgresStore({ url });
    await runSql(opened.url, sql);
    await expect(openPostgresStore({ url })).rejects.toThrow(new RegExp(`: the user lacks privileges: ${lacking}$`));
    await runSql(opened.url, "REVOKE DELETE ON plants FROM clerk");
    await expect(store.delete(1n, deleteCall())).rejects.toMatchObject({ code: Code.Unavailable });
    await expect.poll(() => store.problem).toMatch(new RegExp(`: the user lacks privileges: .*${lacking}$`));
    await store.close();
    await runSql(opened.url, "DROP OWNED BY clerk; DROP ROLE clerk");
  });
});
