import { Code, ConnectError } from "@connectrpc/connect";
import { execFile, execFileSync } from "node:child_process";
import { once } from "node:events";
// oxfmt-ignore
import { copyFileSync, readFileSync, renameSync, rmSync, statSync, symlinkSync, truncateSync, writeFileSync
} from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as delay } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { backUp } from "../../../../../src/stores/sqlite/backup.ts";
import { openDatabase } from "../../../../../src/stores/sqlite/database.ts";
import { openSqliteDatabase } from "../../../../../src/stores/sqlite/plant-database.ts";
import { openSqliteStore } from "../../../../../src/stores/sqlite/sqlite-store.ts";
import { retryIntervalMs } from "../../../../../src/stores/contract/store-health.ts";
import { deleteApart, deleteCall, refusalOf } from "../../../../support/plants/index.ts";
import { plantsIn } from "../../../../support/plants/sqlite-file.ts";
import { closing, createTempFolder, projectFolder } from "@protoport/testing/process";

const run = promisify(execFile);

describe("an SQLite store with a fault", () => {
  test("acknowledges no lost deletion after a failed write, and stops writing", async () => {
    using folder = createTempFolder();
    const file = folder.file("plants.db");
    openDatabase({ file, plantsWhenCreated: { first: 1n, last: 5_000n } }).close();
    const entry = new URL("../../../../support/plants/delete-with-small-files.ts", import.meta.url).pathname;
    // The limit is in blocks with 512 or 1,024 bytes, so files are limited to half a megabyte or a megabyte.
    // oxfmt-ignore
    const limited = ["-c", 'ulimit -f 1000; exec "$@"', "sh", process.execPath, entry, file, "5000"];
    const { stdout } = await run("sh", limited);
    const { results, problem } = JSON.parse(stdout);
    expect(problem).toBe(`${file}: reading from or writing to the disk failed`);
    const acknowledged = results.flatMap((outcome: unknown, i: number) => (outcome === true ? [BigInt(i + 1)] : []));
    expect(acknowledged.length).toBeGreaterThan(0);
    expect(acknowledged.length).toBeLessThan(5_000);
    const remaining = new Set(plantsIn(file));
    expect(acknowledged.filter((id: bigint) => remaining.has(id))).toEqual([]);
    // The batch whose commit has failed may be in the file after a restart. Deletions queued after it were not sent.
    const refused = results.filter((outcome: unknown) => outcome !== true);
    const inDoubt = refused.filter((message: string) => message.includes("outcome of the deletion is unknown"));
    expect(inDoubt.length).toBeGreaterThan(0);
    const unavailableText = "[unavailable] the plant store cannot process the request at the moment";
    const rest = Array<string>(5_000 - acknowledged.length - inDoubt.length).fill(unavailableText);
    expect(refused.slice(inDoubt.length)).toEqual(rest);
  });

  test("waits for another process's transaction", async () => {
    using folder = createTempFolder();
    const file = folder.file("plants.db");
    await using store = closing(await openSqliteStore({ file, plantsWhenCreated: { first: 1n, last: 9n } }));
    const other = new DatabaseSync(file);
    other.exec("BEGIN IMMEDIATE");
    const result = store.delete(1n, deleteCall());
    const insert = other.prepare("INSERT INTO plants VALUES (?)");
    for (let id = 100; id < 50_000; id++) insert.run(id);
    other.exec("COMMIT");
    other.close();
    await expect(result).resolves.toBe(true);
    expect(store.problem).toBeUndefined();
  });

  test("rejects calls when its thread exits, and accepts no more", async () => {
    using folder = createTempFolder();
    const file = folder.file("plants.db");
    const started = once(process, "worker");
    const batches: unknown[] = [];
    const onBatch = (calls: readonly unknown[]) => (error?: unknown) => batches.push(calls.length, error);
    const store = await openSqliteStore({ file, plantsWhenCreated: { first: 1n, last: 9n }, onBatch });
    const [thread] = await started;
    // The first waits for the lock, and the second for the first.
    const other = new DatabaseSync(file);
    other.exec("BEGIN IMMEDIATE");
    const results = await deleteApart([1n, 2n], 1, (id) => refusalOf(store.delete(id, deleteCall())));
    await thread.terminate();
    const refused = await Promise.all(results);
    expect(refused.map(({ rawMessage }) => rawMessage)).toEqual([
      "the outcome of the deletion is unknown; repeating the request is safe",
      "the plant store cannot process the request at the moment",
    ]);
    expect(refused.map(({ metadata }) => metadata.get("retry-after"))).toEqual(["1", "1"]);
    expect(store.problem).toBe(`${file}: the storage thread has exited`);
    await expect(store.delete(3n, deleteCall())).rejects.toMatchObject({ code: Code.Unavailable });
    // Deletions that are refused immediately are not sent as a batch.
    expect(batches).toEqual([1, expect.any(ConnectError), 1, expect.any(ConnectError)]);
    await store.close();
    other.close();
    expect(plantsIn(file)).toHaveLength(9);
  });

  test("refuses to delete from a damaged file, and reports the problem", async () => {
    using folder = createTempFolder();
    const file = folder.file("plants.db");
    openDatabase({ file, plantsWhenCreated: { first: 1n, last: 20_000n } }).close();
    const bytes = readFileSync(file);
    // Everything after the schema's pages.
    bytes.fill(0xa5, 7 * 4_096);
    writeFileSync(file, bytes);
    await using store = closing(await openSqliteStore({ file }));
    await expect(store.delete(10_000n, deleteCall())).rejects.toMatchObject({ code: Code.Unavailable });
    expect(store.problem).toBe(`${file}: the file is damaged`);
    await expect(store.delete(1n, deleteCall())).rejects.toMatchObject({ code: Code.Unavailable });
  });

  test.each([
    ["moved", (file: string) => renameSync(file, `${file}.moved`)],
    ["deleted", (file: string) => rmSync(file)],
    ["replaced", (file: string) => renameSync(`${file}.copy`, file)],
    [
      "replaced by a broken link",
      (file: string) => {
        rmSync(file);
        symlinkSync(file, file);
      },
    ],
  ])("after its file was %s, acknowledges no deletion", async (_name, remove) => {
    using folder = createTempFolder();
    const file = folder.file("plants.db");
    await using store = closing(await openSqliteStore({ file, plantsWhenCreated: { first: 1n, last: 9n } }));
    await expect(store.delete(1n, deleteCall())).resolves.toBe(true);
    backUp(file, `${file}.copy`);
    remove(file);
    await expect(store.delete(2n, deleteCall())).rejects.toMatchObject({ code: Code.Unavailable });
    expect(store.problem).toBe(`${file}: the file was moved, replaced or deleted`);
  });

  test("shrinks its log after a long export", async () => {
    using folder = createTempFolder();
    const file = folder.file("plants.db");
    await using store = closing(await openSqliteStore({ file, plantsWhenCreated: { first: 0n, last: 29_999n } }));
    const logMib = (): number => statSync(`${file}-wal`).size / 2 ** 20;
    // 2 KiB records, so that few deletions fill the log.
    const call = deleteCall({ subject: "s".repeat(1_024), requestId: "r".repeat(1_024) });
    // If the machine is busy, the store does not keep up and refuses some deletions, which are retried.
    const deleteUntilTaken = (id: bigint): Promise<unknown> =>
      store.delete(id, call).catch(async (reason: unknown) => {
        expect(reason).toMatchObject({ code: Code.ResourceExhausted });
        await new Promise(setImmediate);
        return await deleteUntilTaken(id);
      });
    const deleteMany = (from: number): Promise<unknown> =>
      Promise.all(Array.from({ length: 5_000 }, (_, i) => deleteUntilTaken(BigInt(from + i))));
    await using database = await openSqliteDatabase(file);
    for await (const ids of database.exportPlants()) {
      expect(ids).toHaveLength(10_000);
      for (const from of [0, 5_000, 10_000]) await deleteMany(from);
      break;
    }
    expect(logMib()).toBeGreaterThan(32);
    await deleteMany(15_000);
    await deleteMany(20_000);
    expect(logMib()).toBeLessThan(17);
  });

  test("stops writing while another process holds the lock, and then resumes", async () => {
    using folder = createTempFolder();
    const file = folder.file("plants.db");
    const plantsWhenCreated = { first: 1n, last: 9n };
    await using store = closing(await openSqliteStore({ file, plantsWhenCreated, lockTimeoutMs: 50 }));
    const other = new DatabaseSync(file);
    other.exec("BEGIN IMMEDIATE");
    const refused = await refusalOf(store.delete(1n, deleteCall()));
    expect(refused).toMatchObject({ code: Code.Unavailable });
    expect(refused.metadata.get("retry-after")).toBe("1");
    expect(store.problem).toBe(`${file}: another process holds the lock on the file`);
    expect(store.needsRestart).toBe(false);
    await expect(store.delete(1n, deleteCall())).rejects.toMatchObject({ code: Code.Unavailable });
    other.exec("ROLLBACK");
    other.close();
    await expect.poll(() => store.problem).toBeUndefined();
    await expect(store.delete(1n, deleteCall())).resolves.toBe(true);
  });
});

// See docs/how-to/operations.md. The server exits with code 74, or waits for an operator.
describe("an SQLite store with a permanent problem", () => {
  test.each<
    [
      verb: "needs a restart" | "waits for an operator",
      name: string,
      spoil: (file: string) => void,
      problem: string,
      isSpoiltBefore?: boolean,
    ]
  >(
    // oxfmt-ignore
    [
      ["needs a restart", "its file is damaged", (file) => {
          const bytes = readFileSync(file);
          // All but the first page of each table and index.
          writeFileSync(file, bytes.fill(0xff, 8 * 4_096));
        }, "the file is damaged", true],
      ["waits for an operator", "its log is truncated", (file) => truncateSync(`${file}-wal`),
        "its write-ahead log was truncated or overwritten; a restart may undo acknowledged deletions"],
      ["needs a restart", "its -shm file is deleted", (file) => rmSync(`${file}-shm`),
        "its -shm file, which holds the locks, was moved, replaced or deleted; restart the server"],
      ["needs a restart", "its log is deleted", (file) => rmSync(`${file}-wal`),
        "its write-ahead log was moved, replaced or deleted; every acknowledged deletion is in the file"],
      ["waits for an operator", "its log is replaced", (file) => {
          rmSync(`${file}-wal`);
          writeFileSync(`${file}-wal`, "");
        }, "its write-ahead log was moved, replaced or deleted; a restart without it may undo acknowledged deletions"],
      ["waits for an operator", "its file is moved", (file) => renameSync(file, `${file}.moved`),
        "the file was moved, replaced or deleted"],
    ],
  )("%s if %s, and reports the problem", async (verb, _name, spoil, problem, isSpoiltBefore = false) => {
    using folder = createTempFolder();
    const file = folder.file("plants.db");
    await (await openSqliteStore({ file, plantsWhenCreated: { first: 1n, last: 5_000n } })).close();
    if (isSpoiltBefore) spoil(file);
    await using store = closing(await openSqliteStore({ file }));
    expect(store.needsRestart).toBe(false);
    if (!isSpoiltBefore) {
      await expect(store.delete(1n, deleteCall())).resolves.toBe(true);
      spoil(file);
    }
    await refusalOf(store.delete(4_000n, deleteCall()));
    const want = { problem: `${file}: ${problem}`, needsRestart: verb === "needs a restart" };
    expect({ problem: store.problem, needsRestart: store.needsRestart }).toEqual(want);
  });

  test("causes no unhandled rejection if its thread exits during a check", async () => {
    using folder = createTempFolder();
    const file = folder.file("plants.db");
    const started = once(process, "worker");
    const lockTimeoutMs = 500;
    await using store = closing(await openSqliteStore({ file, migrates: true, lockTimeoutMs }));
    const [thread] = await started;
    using other = new DatabaseSync(file);
    other.exec("BEGIN IMMEDIATE");
    await refusalOf(store.delete(1n, deleteCall()));
    const faults: unknown[] = [];
    const onFault = (fault: unknown): void => void faults.push(fault);
    process.on("unhandledRejection", onFault);
    // The thread is terminated in the middle of the next check, which also waits for the lock.
    await delay(retryIntervalMs + lockTimeoutMs / 2);
    await thread.terminate();
    await delay(0);
    process.off("unhandledRejection", onFault);
    const want = { faults: [], problem: `${file}: the storage thread has exited` };
    expect({ faults, problem: store.problem }).toEqual(want);
  });

  test("is not ready on a full disk, although the log of a killed process has space", async ({ annotate }) => {
    using folder = createTempFolder();
    try {
      await run("mount", ["-t", "tmpfs", "-o", "size=8m", "none", folder.path]);
    } catch {
      return void (await annotate("not tried: this machine does not allow mounts"));
    }
    using _ = { [Symbol.dispose]: () => void execFileSync("umount", [folder.path]) };
    const [crashing, file] = [folder.file("crashing.db"), folder.file("plants.db")];
    {
      using db = openDatabase({ file: crashing, plantsWhenCreated: { first: 1n, last: 30_000n } });
      // A large commit extends the log, and the next commit writes at the log's start.
      db.exec("DELETE FROM plants WHERE id > 9; PRAGMA wal_checkpoint; DELETE FROM plants WHERE id = 9");
      for (const end of ["", "-wal", "-shm"]) copyFileSync(`${crashing}${end}`, `${file}${end}`);
    }
    rmSync(crashing);
    const filler = folder.file("filler");
    // The filler is larger than the free space, so that it fills the disk.
    expect(() => writeFileSync(filler, new Uint8Array(2 ** 23))).toThrow(/ENOSPC/);
    await using store = closing(await openSqliteStore({ file }));
    await expect.poll(() => store.isChecking).toBe(false);
    expect(store.problem).toBe(`${file}: the disk is full`);
    expect(store.needsRestart).toBe(false);
    await expect(store.delete(1n, deleteCall())).rejects.toThrow(/unavailable/);
    rmSync(filler);
    await expect.poll(() => store.problem).toBeUndefined();
    await expect(store.delete(1n, deleteCall())).resolves.toBe(true);
  });

  test("ends its process after a start at which the log cannot grow", async () => {
    using folder = createTempFolder();
    const [crashing, file] = [folder.file("crashing.db"), folder.file("plants.db")];
    {
      using db = openDatabase({ file: crashing, plantsWhenCreated: { first: 1n, last: 9n } });
      for (let id = 1; id < 9; id++) db.exec(`DELETE FROM plants WHERE id = ${id}`);
      for (const end of ["", "-wal", "-shm"]) copyFileSync(`${crashing}${end}`, `${file}${end}`);
    }
    const module = JSON.stringify(pathToFileURL(join(projectFolder, "src/stores/sqlite/sqlite-store.ts")).href);
    const script = `
      const { openSqliteStore } = await import(${module});
      const store = await openSqliteStore({ file: ${JSON.stringify(file)} });
      while (store.isChecking) await new Promise(setImmediate);
      console.log(store.problem);
      await store.close();`;
    const limit = `ulimit -f ${Math.ceil(statSync(`${file}-wal`).size / 1_024)}; exec "$@"`;
    const args = ["-c", limit, "bash", process.execPath, "--disable-warning=ExperimentalWarning", "-e", script];
    const { stdout } = await run("bash", args, { timeout: 20_000 });
    expect(stdout).toBe(`${file}: EFBIG: file too large, write\n`);
  });

  test("needs a restart after its thread has exited", async () => {
    using folder = createTempFolder();
    const started = once(process, "worker");
    await using store = closing(await openSqliteStore({ file: folder.file("plants.db"), migrates: true }));
    const [thread] = await started;
    await thread.terminate();
    await expect.poll(() => store.problem).toMatch(/: the storage thread has exited$/);
    expect(store.needsRestart).toBe(true);
  });
});
