import { execFileSync } from "node:child_process";
// oxfmt-ignore
import { copyFileSync, linkSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync
} from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { openPlantStore } from "../../../../../src/stores/index.ts";
import { openDatabase } from "../../../../../src/stores/sqlite/database.ts";
import { createTempFolder, type TempFolder } from "@protoport/testing/process";
import { deleteCall } from "../../../../support/plants/delete-call.ts";
import { move } from "../../../../support/plants/moved-stores.ts";
import { runCommand } from "../../../../support/process/run-command.ts";

const valid = "the configuration is valid";

/** Creates a store with many plants and returns its file. */
function createStore(folder: TempFolder, name = "plants.db"): string {
  const file = folder.file(name);
  openDatabase({ file, plantsWhenCreated: { first: 1n, last: 20_000n } }).close();
  return file;
}

/** Leaves a store as a crash does, with a log that no process has open. */
function leaveLog(folder: TempFolder, name = "plants.db"): string {
  const file = createStore(folder, `${name}.crashing`);
  using db = openDatabase({ file });
  db.exec("DELETE FROM plants WHERE id < 100");
  for (const end of ["", "-wal"]) copyFileSync(`${file}${end}`, `${folder.file(name)}${end}`);
  return folder.file(name);
}

/** Leaves a store as a crash during a transaction without a write-ahead log does. */
function leaveJournal(folder: TempFolder): string {
  const file = createStore(folder, "crashing.db");
  using db = new DatabaseSync(file);
  // With one page of cache, changed pages go to the file before the commit.
  db.exec("PRAGMA journal_mode = DELETE; PRAGMA cache_size = 1; BEGIN; DELETE FROM plants WHERE id > 0");
  for (const end of ["", "-journal"]) copyFileSync(`${file}${end}`, `${folder.file("plants.db")}${end}`);
  return folder.file("plants.db");
}

function damage(file: string): void {
  // A page with plants that leaveLog does not delete.
  writeFileSync(file, readFileSync(file).fill(0xa5, 25 * 4_096, 26 * 4_096));
}

/** A store's state, what a server does in it, and what `check` reports. */
interface State {
  readonly name: string;
  /** Puts the store `plants.db` into the state, and returns what ends it. */
  readonly enter: (folder: TempFolder) => Disposable | AsyncDisposable | void | Promise<void>;
  readonly isReady: boolean;
  /** Whether the check fails although the server is ready, because the server does not read the whole file. */
  readonly isDamaged?: true;
  readonly words?: string;
}

// oxfmt-ignore
const states: readonly State[] = [
  { name: "nothing is wrong", enter: (folder) => void createStore(folder), isReady: true },
  { name: "a server uses the store", enter: (folder) => openDatabase({ file: createStore(folder) }), isReady: true },
  { name: "a crash has left a log", enter: (folder) => void leaveLog(folder), isReady: true },
  { name: "a crash has left a rollback journal", enter: (folder) => void leaveJournal(folder), isReady: true,
    words: "has an interrupted transaction, which the next start rolls back; the file was not checked" },
  { name: "another process holds the lock", enter: (folder) => {
      const db = openDatabase({ file: createStore(folder) });
      db.exec("BEGIN IMMEDIATE");
      return db;
    }, isReady: false, words: "plants.db: another process holds the lock on the file" },
  { name: "the store was moved", enter: async (folder) => {
      const [path, other] = [createStore(folder), folder.file("other.db")];
      openDatabase({ file: other, migrates: true }).close();
      await move({ kind: "sqlite", path }, { kind: "sqlite", path: other });
    }, isReady: false, words: "plants.db: it was moved to FOLDER/other.db at" },
  { name: "the file is missing", enter: () => undefined, isReady: false,
    words: 'file not found in FOLDER: only if this is a new store, run "plantstore migrate" to create it; otherwise' },
  { name: "the file is empty", enter: (folder) => writeFileSync(folder.file("plants.db"), ""), isReady: false,
    words: "it does not contain a plant store yet: only if this is a new store" },
  { name: "the file is a text file", enter: (folder) => writeFileSync(folder.file("plants.db"), "dahlia ".repeat(200)),
    isReady: false, words: "the file is not an SQLite database" },
  { name: "the path is a folder", enter: (folder) => mkdirSync(folder.file("plants.db")), isReady: false,
    words: "the path is a directory" },
  { name: "the path is a dangling link", enter: (folder) => symlinkSync("gone.db", folder.file("plants.db")),
    isReady: false, words: "the path is a symbolic link to gone.db, which does not exist" },
  { name: "the path is a link to a store", enter: (folder) => {
      createStore(folder, "volume.db");
      symlinkSync("volume.db", folder.file("plants.db"));
    }, isReady: true },
  { name: "the file has a second name", enter: (folder) => linkSync(createStore(folder), folder.file("second.db")),
    isReady: false, words: "the file has 2 names (hard links)" },
  { name: "the file belongs to another program", enter: (folder) => {
      using db = new DatabaseSync(folder.file("plants.db"));
      db.exec("CREATE TABLE mail (id INTEGER)");
    }, isReady: false, words: "the file is an SQLite database of another program" },
  { name: "the schema is newer", enter: (folder) => {
      using db = openDatabase({ file: createStore(folder) });
      db.exec("PRAGMA user_version = 99");
    }, isReady: false, words: "its schema has version 99" },
  { name: "a page is damaged", enter: (folder) => damage(createStore(folder)), isReady: true, isDamaged: true,
    words: "the file is damaged" },
  { name: "a page is damaged and a crash has left a log", enter: (folder) => damage(leaveLog(folder)), isReady: false,
    words: "the file is damaged" },
  { name: "a trigger protects all plants", enter: (folder) => {
      using db = openDatabase({ file: createStore(folder) });
      db.exec("CREATE TRIGGER keep BEFORE DELETE ON plants BEGIN SELECT RAISE(ABORT, 'kept'); END");
    }, isReady: true },
];

/** Returns whether a server would be ready, which requires that its store opens and can delete. */
async function isServerReady(path: string): Promise<boolean> {
  const store = await openPlantStore({ kind: "sqlite", path }).catch(() => undefined);
  if (store === undefined) return false;
  await store.delete(77n, deleteCall()).catch(() => undefined);
  const isReady = store.problem === undefined;
  await store.close();
  return isReady;
}

const check = (folder: TempFolder) => runCommand(["check"], { DATABASE_URL: `sqlite:${folder.file("plants.db")}` });

/** Returns the contents of the files in a folder, except a log's index, in which readers are recorded. */
function contentOf(folder: TempFolder): readonly (readonly [name: string, content: string])[] {
  const files = readdirSync(folder.path).filter(
    (name) => !name.endsWith("-shm") && statSync(folder.file(name), { throwIfNoEntry: false })?.isFile() === true,
  );
  return files.map((name) => [name, readFileSync(folder.file(name), "latin1")]);
}

describe("check", () => {
  test.each(states)(
    "when $name, reports the same readiness as a server",
    async ({ enter, isReady, isDamaged = false, words = valid }) => {
      using folder = createTempFolder();
      await using state = new AsyncDisposableStack();
      const entered = await enter(folder);
      if (entered !== undefined) state.use(entered);
      const before = contentOf(folder);
      const { exitCode, err } = await check(folder);
      expect({ exitCode, text: err.join("\n") }).toEqual({
        exitCode: isReady && !isDamaged ? 0 : 1,
        text: expect.stringContaining(words.replace("FOLDER", folder.path)),
      });
      expect(contentOf(folder)).toEqual(before);
      expect(await isServerReady(folder.file("plants.db"))).toBe(isReady);
    },
  );

  test("fails when the disk is full", async ({ annotate }) => {
    using folder = createTempFolder();
    try {
      execFileSync("mount", ["-t", "tmpfs", "-o", "size=1m", "none", folder.path], { stdio: "pipe" });
    } catch {
      return void (await annotate("not tried: this machine does not allow mounts"));
    }
    using _ = { [Symbol.dispose]: () => void execFileSync("umount", [folder.path]) };
    const file = createStore(folder);
    expect((await check(folder)).exitCode).toBe(0);
    // The filler is larger than the free space, so that it fills the disk.
    expect(() => writeFileSync(folder.file("filler"), new Uint8Array(2 ** 20))).toThrow(/ENOSPC/);
    const { exitCode, err } = await check(folder);
    const want = { exitCode: 1, err: [`plantstore: DATABASE_URL: cannot open ${file}: the disk is full`] };
    expect({ exitCode, err }).toEqual(want);
    expect(await isServerReady(file)).toBe(false);
  });
});
