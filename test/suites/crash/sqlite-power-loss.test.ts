import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { openDatabase } from "../../../src/stores/sqlite/database.ts";
import { waitLimitMs } from "@protoport/testing/process";
import { canForget, ForgetfulDisk } from "../../support/plants/disk/forgetful-disk.ts";
import { plantsIn, readSqlite } from "../../support/plants/sqlite-file.ts";

const plants = 1_000;
const timeout = 120_000;
const unknown = "the outcome of the deletion is unknown; repeating the request is safe";
const away = "the plant store cannot process the request at the moment";
const deleting = new URL("../../support/plants/disk/delete-and-print.ts", import.meta.url).pathname;

/** The program for a command that is killed once it has printed its result. */
function asking(module: string, names: string, body: string): string[] {
  const { href } = new URL(`../../../src/stores/sqlite/${module}`, import.meta.url);
  const program = `
    import { writeSync } from "node:fs";
    import { ${names} } from "${href}";
    const [file] = process.argv.slice(1);
    ${body}
    process.kill(process.pid, "SIGKILL");`;
  return ["--input-type=module", "-e", program];
}

const onDatabase = (body: string): string[] =>
  asking("plant-database.ts", "openSqliteDatabase", `const database = await openSqliteDatabase(file); ${body}`);

const onDatabaseFile = (body: string): string[] =>
  asking("database.ts", "openDatabase", `const db = openDatabase({ file }); ${body}`);

const createDisk = (): ForgetfulDisk =>
  new ForgetfulDisk((folder) => {
    openDatabase({ file: join(folder, "plants.db"), plantsWhenCreated: { first: 1n, last: BigInt(plants) } }).close();
  });

/** Returns the output of a process that deletes plants 1 to 10 with keys, until syncing its log fails. */
const deleteTen = (disk: ForgetfulDisk, fault: string): unknown[] =>
  toldBy(disk.run([deleting, join(disk.folder, "plants.db"), "1", "10", "with keys"], fault));

const toldBy = (output: string) => output.split("\n").flatMap((line) => (line === "" ? [] : [JSON.parse(line)]));

/** Expects an undamaged store without some plants, whatever part of its file the system has written. */
function expectAfterLossOfPower(disk: ForgetfulDisk, gone: readonly number[]): void {
  for (const written of [[], ["plants.db"]]) {
    const file = join(disk.losePower(written), "plants.db");
    expect(plantsIn(file).map(Number)).toEqual(allBut(gone));
    expect(readSqlite(file, "PRAGMA integrity_check")).toEqual([{ integrity_check: "ok" }]);
  }
}

const allBut = (gone: readonly number[]): number[] =>
  Array.from({ length: plants }, (_, i) => i + 1).filter((id) => !gone.includes(id));

// Each runs in a new process, which is killed once it has printed its result. Plant 4 is the one in doubt.
// oxfmt-ignore
const questions: readonly { name: string; args: readonly string[]; answer: unknown; gone?: readonly number[] }[] = [
  { name: "a retry with a key", args: [deleting, "FILE", "4", "4", "with keys"], answer: true },
  { name: "a retry without a key", args: [deleting, "FILE", "4"], answer: false },
  { name: "another plant's deletion", args: [deleting, "FILE", "20"], answer: true, gone: [20] },
  { name: "an export",
    args: onDatabase(`for await (const ids of database.exportPlants()) writeSync(1, String(ids.length));`),
    answer: plants - 4 },
  { name: "a list of deletions",
    args: onDatabase(`for await (const deletions of database.listDeletions()) writeSync(1, String(deletions.length));`),
    answer: 4 },
  { name: "an import",
    args: onDatabase(`writeSync(1, JSON.stringify(await (await database.startImport()).add([4n])));`),
    answer: { added: 0, present: 0, deleted: 1 } },
  { name: "a backup", args: asking("backup.ts", "backUp", 'backUp(file, `${file}.copy`); writeSync(1, "true");'),
    answer: true },
];

// After the sync for the log's header, the fourth deletion is the fifth sync.
// oxfmt-ignore
const ends = [
  { name: "killed before it synced its last commit", fault: "kill -wal 5", outcomes: [true, true, true] },
  { name: "stopped by a failed sync", fault: "fail -wal 5",
    outcomes: [true, true, true, unknown, ...Array(6).fill(away)] },
];

describe.runIf(canForget()).each(ends)("a power loss after a store was $name", ({ fault, outcomes }) => {
  test.each(questions)("leaves the result of $name correct", { timeout }, ({ args, answer, gone = [] }) => {
    using disk = createDisk();
    const file = join(disk.folder, "plants.db");
    expect(deleteTen(disk, fault)).toEqual(outcomes);
    const program = args.includes("FILE") ? args.map((arg) => (arg === "FILE" ? file : arg)) : [...args, file];
    expect(toldBy(disk.run(program))).toEqual([answer]);
    expectAfterLossOfPower(disk, [1, 2, 3, 4, ...gone]);
    if (existsSync(`${file}.copy`)) expect(plantsIn(`${file}.copy`).map(Number)).toEqual(allBut([1, 2, 3, 4]));
  });
});

describe.runIf(canForget())("a store on SQLite with a disk that loses unsynced data", () => {
  test("is not damaged when its leftover log cannot be synced", { timeout }, () => {
    for (let failed = 4; failed < 8; failed++) {
      using disk = createDisk();
      const file = join(disk.folder, "plants.db");
      const acknowledged = deleteTen(disk, `fail -wal ${failed}`).indexOf(unknown);
      expect(acknowledged).toBe(failed - 2);
      expect(() => disk.run([deleting, file, "20"], "fail -wal 1")).toThrow(/cannot open .*plants\.db: EIO/);
      expect(readdirSync(disk.folder)).toContain("plants.db-wal");
      expectAfterLossOfPower(disk, allBut([]).slice(0, acknowledged));
      expect(toldBy(disk.run([deleting, file, String(acknowledged + 1)]))).toEqual([false]);
      expectAfterLossOfPower(disk, allBut([]).slice(0, acknowledged + 1));
    }
  });

  test("rewrites a long log completely if its end could not be synced", { timeout }, () => {
    using disk = createDisk();
    // The table has more bytes than opening the store rewrites in one write. The log's header and the table cause the
    // first two syncs, and the deletion causes the third.
    const leaving = onDatabaseFile(`
      db.exec("PRAGMA wal_autocheckpoint = 0; CREATE TABLE other AS SELECT randomblob(9000000) AS bytes");
      try { db.exec("DELETE FROM plants WHERE id = 1"); } catch (fault) { writeSync(1, JSON.stringify(fault.message)); }`);
    const file = join(disk.folder, "plants.db");
    expect(toldBy(disk.run([...leaving, file], "fail -wal 3"))).toEqual(["disk I/O error"]);
    expect(toldBy(disk.run([deleting, file, "1"]))).toEqual([false]);
    expectAfterLossOfPower(disk, [1]);
  });

  test("keeps acknowledged deletions when the process that created it was killed", { timeout }, () => {
    using disk = new ForgetfulDisk(() => undefined);
    const file = join(disk.folder, "plants.db");
    expect(toldBy(disk.run([deleting, file, "1", "10"], "kill -wal 4"))).toEqual([true, true]);
    expect(toldBy(disk.run([deleting, file, "3"]))).toEqual([false]);
    expectAfterLossOfPower(disk, [1, 2, 3]);
  });

  test("keeps acknowledged deletions when its log cannot be copied into the file", { timeout }, () => {
    using disk = createDisk();
    const file = join(disk.folder, "plants.db");
    expect(new Set(toldBy(disk.run([deleting, file, "1", "500"], "fail plants.db 1")))).toEqual(new Set([true]));
    expectAfterLossOfPower(disk, allBut([]).slice(0, 500));
  });

  test("reports failing syncs even if all requested plants are missing", { timeout }, () => {
    using disk = createDisk();
    const { href } = new URL("../../../src/stores/sqlite/sqlite-store.ts", import.meta.url);
    // A commit that deletes nothing writes nothing, so the first sync is a write check's.
    const program = `
      import { setTimeout as sleep } from "node:timers/promises";
      import { openSqliteStore } from "${href}";
      const store = await openSqliteStore({ file: process.argv[1] });
      const call = { subject: "", requestId: "", context: { signal: new AbortController().signal } };
      for (let waitedMs = 0; waitedMs < ${waitLimitMs} && store.problem === undefined; waitedMs += 100) {
        await store.delete(5_000n, call);
        await sleep(100);
      }
      process.stdout.write(String(store.problem));
      await store.close();`;
    const file = join(disk.folder, "plants.db");
    const problem = disk.run(["--input-type=module", "-e", program, file], "fail -wal 1");
    expect(problem).toBe(`${file}: reading from or writing to the disk failed`);
  });
});
