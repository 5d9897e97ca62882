import { type ChildProcess, execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as sleep } from "node:timers/promises";
import type { Dice } from "../../../protoport/testing/src/dice.ts";
import { createTempFolder } from "../../../protoport/testing/src/process/temp-folder.ts";
import { readTables } from "../cluster/check-history.ts";
import { freeze, killAndStart, sleepUpTo, type StoreDatabase } from "./store-database.ts";

/** The size of the store's disk, which the files of an hour do not fill. */
const diskBytes = 2 ** 28;

/** Returns the location of an SQLite file that another program uses too. */
export async function openSqliteDatabase(dice: Dice): Promise<StoreDatabase> {
  const folder = createTempFolder();
  execFileSync("mount", ["-t", "tmpfs", "-o", `size=${diskBytes}`, "none", folder.path]);
  const file = folder.file("plants.db");
  let child: ChildProcess | undefined;
  const other = {
    start: async () => {
      const program = join(import.meta.dirname, "other-sqlite-program.ts");
      child = spawn(process.execPath, [program, file, String(dice.roll(1_000_000))], { stdio: "ignore" });
    },
    kill: async () => {
      if (child === undefined || child.exitCode !== null) return;
      child.kill("SIGKILL");
      await once(child, "exit");
    },
    signal: (name: NodeJS.Signals) => void child?.kill(name),
  };
  return {
    url: `sqlite:${file}`,
    directUrl: `sqlite:${file}`,
    prepare: () => other.start(),
    faults: [
      // The other program may hold the write lock at this time.
      { name: "other program frozen", inject: () => freeze(other, dice) },
      { name: "other program killed", inject: () => killAndStart(other, dice) },
      { name: "disk full", inject: () => fillDisk(folder.file("filler"), dice) },
    ],
    signal: other.signal,
    // The other program disturbs the store all the time.
    disturb: () => sleep(1_000),
    readTables: async () => {
      using db = new DatabaseSync(file, { readOnly: true, timeout: 5_000 });
      return await readTables(async (sql) => db.prepare(sql).all());
    },
    countConnections: async () => 0,
    [Symbol.asyncDispose]: async () => {
      await other.kill();
      execFileSync("umount", ["--lazy", folder.path]);
      folder[Symbol.dispose]();
    },
  };
}

/** Fills the disk for up to five seconds. */
async function fillDisk(file: string, dice: Dice): Promise<void> {
  // Writes until the disk is full.
  spawnSync("dd", ["if=/dev/zero", `of=${file}`, "bs=64k"], { stdio: "ignore" });
  await sleepUpTo(5_000, dice);
  rmSync(file);
}
