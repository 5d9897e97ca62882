import { DatabaseSync } from "node:sqlite";
import { setTimeout as sleep } from "node:timers/promises";
import { Dice } from "../../../protoport/testing/src/dice.ts";

// Another program that uses a store's file, run as `node other-sqlite-program.ts FILE SEED`. The program holds the
// writers' lock, reads from old snapshots and runs checkpoints, until it is killed.

const [path = "", seed = "1"] = process.argv.slice(2);
const dice = new Dice(Number(seed));
const db = new DatabaseSync(path, { timeout: 1_000 });
for (;;) {
  try {
    db.exec(
      dice.oneOf(["BEGIN IMMEDIATE", "BEGIN", "PRAGMA wal_checkpoint(TRUNCATE)", "PRAGMA wal_checkpoint(PASSIVE)"]),
    );
    db.prepare("SELECT count(*) FROM plants").get();
    await sleep(dice.roll(1_000));
    if (db.isTransaction) db.exec("ROLLBACK");
  } catch {
    // Another program holds the lock.
  }
  await sleep(dice.roll(2_000));
}
