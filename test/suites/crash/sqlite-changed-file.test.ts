import { copyFileSync, truncateSync, utimesSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { openDatabase } from "../../../src/stores/sqlite/database.ts";
import { DeleteTally, startDeleteLoad } from "../../support/plants/delete-load.ts";
import { plantsIn, readSqlite } from "../../support/plants/sqlite-file.ts";
import { startChildServer, startCommandLine } from "../../support/process/index.ts";
import { createTempFolder } from "@protoport/testing/process";

const plants = 50_000n;
const timeout = 180_000;
/** Number of deletions that may be acknowledged before a change, but counted after the change: one per caller. */
const onTheWay = 16;

/** Returns how many acknowledged deletions a file has lost, and whether it is damaged. */
function judge(file: string, deleted: Iterable<bigint>) {
  const left = new Set(plantsIn(file));
  const back = [...deleted].filter((id) => left.has(id)).length;
  return { back, integrity: readSqlite(file, "PRAGMA integrity_check") };
}

const sound = [{ integrity_check: "ok" }];

describe("a loaded server on SQLite with its file changed by another program", () => {
  test("stops deleting once its log is truncated, and leaves the file unchanged", { timeout }, async () => {
    for (const signal of ["SIGKILL", "SIGTERM"] as const) {
      using folder = createTempFolder();
      const file = folder.file("plants.db");
      openDatabase({ file, plantsWhenCreated: { first: 1n, last: plants } }).close();
      const tally = new DeleteTally();
      await using server = await startChildServer(file);
      const load = startDeleteLoad(server.address, tally);
      await load.acknowledged(500);
      truncateSync(`${file}-wal`);
      const before = tally.deleted.size;
      await expect.poll(() => tally.failures.get("error 14") ?? 0).toBeGreaterThan(100);
      expect(tally.deleted.size - before).toBeLessThanOrEqual(onTheWay);
      const url = `http://127.0.0.1:${server.address.port}/readyz`;
      expect(await (await fetch(url)).json()).toEqual({ status: "not ready", obstacles: ["store"] });
      await load.stop();
      await server.stop(signal);
      // Copies the file without the log, which does not belong to the file.
      copyFileSync(file, folder.file("found.db"));
      expect(judge(folder.file("found.db"), []).integrity).toEqual(sound);
    }
  });

  test("keeps deleting when its files' timestamps change, and loses no deletion", { timeout }, async () => {
    using folder = createTempFolder();
    const file = folder.file("plants.db");
    openDatabase({ file, plantsWhenCreated: { first: 1n, last: plants } }).close();
    const tally = new DeleteTally();
    {
      await using server = await startChildServer(file);
      const load = startDeleteLoad(server.address, tally);
      for (let round = 1; round <= 20; round++) {
        await load.acknowledged(100);
        for (const end of ["", "-wal", "-shm"]) utimesSync(`${file}${end}`, round, round);
      }
      await load.stop();
      const { status } = await fetch(`http://127.0.0.1:${server.address.port}/readyz`);
      expect(status).toBe(200);
      await server.stop("SIGKILL");
    }
    expect([...tally.failures]).toEqual([]);
    expect(judge(file, tally.deleted)).toEqual({ back: 0, integrity: sound });
  });
});

describe("a loaded server on SQLite next to other SQLite processes", () => {
  test("keeps deleting, and loses no deletion", { timeout }, async () => {
    using folder = createTempFolder();
    const file = folder.file("plants.db");
    openDatabase({ file, plantsWhenCreated: { first: 1n, last: plants } }).close();
    const tally = new DeleteTally();
    await using server = await startChildServer(file);
    const load = startDeleteLoad(server.address, tally);
    const environment = { DATABASE_URL: `sqlite:${file}` };
    const ids = Array.from({ length: 60_000 }, (_, i) => BigInt(i) * 7_919_000_000n + plants + 1n);
    for (let round = 0; round < 3; round++) {
      await using importing = startCommandLine(["import"], folder.path, environment);
      importing.process.stdin.end(`${ids.slice(round * 20_000, (round + 1) * 20_000).join("\n")}\n`);
      await using backingUp = startCommandLine(["backup", folder.file(`${round}.db`)], folder.path, environment);
      await using exporting = startCommandLine(["export"], folder.path, environment);
      expect(await Promise.all([importing.end(), backingUp.end(), exporting.end()])).toEqual([0, 0, 0]);
      checkpointElsewhere(file);
      await sleep(200);
    }
    await load.stop();
    expect([...tally.failures]).toEqual([]);
    await server.stop("SIGKILL");
    expect(judge(file, tally.deleted)).toEqual({ back: 0, integrity: sound });
    expect(plantsIn(file)).toHaveLength(Number(plants) + ids.length - tally.deleted.size);
  });
});

/** Copies the whole log into the file, and truncates it, as an operator or a replication tool does. */
function checkpointElsewhere(file: string): void {
  readSqlite(file, "PRAGMA wal_checkpoint(TRUNCATE)");
}
