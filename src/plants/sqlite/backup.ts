import { closeSync, existsSync, fsyncSync, linkSync, openSync, rmSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { StoreOpenError } from "../errors.ts";
import { openExistingDatabase } from "./database.ts";
import { fileProblemOf } from "./problem.ts";

/**
 * Copies a store's file as it is at one moment, while a server goes on using it. The copy is a plant
 * store of its own, and is there as a whole, durably, or not at all.
 *
 * @throws StoreOpenError when the store cannot be read, or the copy exists already or cannot be written
 */
export function backUp(file: string, copy: string): void {
  if (existsSync(copy)) throw new StoreOpenError(`cannot write ${copy}: it exists already`);
  const unfinished = `${copy}.${process.pid}.unfinished`;
  const db = openExistingDatabase(file);
  try {
    db.prepare("VACUUM INTO ?").run(resolve(unfinished));
    makeDurable(unfinished);
    // Unlike a rename, a link does not replace a file that has come meanwhile.
    linkSync(unfinished, copy);
    // A name is durable once its folder is; Windows has no such thing as a folder to open.
    if (process.platform !== "win32") makeDurable(dirname(resolve(copy)));
  } catch (fault) {
    throw new StoreOpenError(`cannot write ${copy}: ${fileProblemOf(fault).text}`, { cause: fault });
  } finally {
    rmSync(unfinished, { force: true });
    db.close();
  }
}

function makeDurable(path: string): void {
  const descriptor = openSync(path, "r");
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
