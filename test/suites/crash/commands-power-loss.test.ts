import { copyFileSync, existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { backUp } from "../../../src/stores/index.ts";
import { openDatabase } from "../../../src/stores/sqlite/database.ts";
import { canForget, ForgetfulDisk } from "../../support/plants/disk/forgetful-disk.ts";
import { createMissingStore, leaveTruncatedFile, plantsIn, readSqlite } from "../../support/plants/sqlite-file.ts";
import { projectFolder } from "@protoport/testing/process";

// The result that a command has reported survives a power loss, and an earlier power loss leaves the old state or the
// new one. The power is lost before each sync, after each rename and after the exit. If a sync is missing, the new
// state is incomplete, or a name has lost its content.

const timeout = 120_000;

/** An operator's command that changes files. */
interface Change {
  readonly name: string;
  readonly fill: (folder: string) => void;
  readonly words: (folder: string) => readonly string[];
  readonly read: (folder: string) => unknown;
  readonly before: unknown;
  readonly after: unknown;
}

const fileIn = (folder: string): string => join(folder, "plants.db");

const fillStore = (folder: string, first: bigint, last: bigint): void =>
  openDatabase({ file: fileIn(folder), plantsWhenCreated: { first, last } }).close();

/** Creates plants 7 to 9 with the deletion of 8 in a crash's log, and a backup with plants 1 to 3. */
function fillCrashed(folder: string): void {
  fillBackup(folder);
  using db = openDatabase({ file: join(folder, "crashing.db"), plantsWhenCreated: { first: 7n, last: 9n } });
  db.exec("DELETE FROM plants WHERE id = 8");
  for (const end of ["", "-wal"]) copyFileSync(`${join(folder, "crashing.db")}${end}`, `${fileIn(folder)}${end}`);
}

function fillBackup(folder: string): void {
  openDatabase({ file: join(folder, "first.db"), plantsWhenCreated: { first: 1n, last: 3n } }).close();
  backUp(join(folder, "first.db"), join(folder, "backup.db"));
}

const tokenLine = `sha256:${"a".repeat(64)} ann - -\n`;
const fillTokens = (folder: string): void => writeFileSync(join(folder, "tokens"), tokenLine);

/** Returns the token names in a file, `undefined` if there is no file. */
function tokensIn(folder: string): readonly (string | undefined)[] | undefined {
  if (!existsSync(join(folder, "tokens"))) return undefined;
  const text = readFileSync(join(folder, "tokens"), "utf8").trimEnd();
  return text.split("\n").map((line) => line.split(" ")[1]);
}

/** Returns the plants in a file, `undefined` if there is no store. */
function storeIn(file: string): readonly bigint[] | undefined {
  if (!existsSync(file) || readSqlite(file, "SELECT 1 FROM sqlite_schema").length === 0) return undefined;
  return plantsIn(file);
}

/** Returns the plants in a file, unless it is missing or from {@link leaveTruncatedFile}. */
function plantsUnlessDamaged(file: string): readonly bigint[] | "gone or damaged" {
  if (!existsSync(file) || readSqlite(file, "SELECT 1 FROM sqlite_schema WHERE name = 'filler'").length > 0)
    return "gone or damaged";
  return plantsIn(file);
}

/** Returns how far a move of plants 1 to 3 to `to.db` has come. */
function moveStateIn(folder: string): string {
  const [source, target] = [fileIn(folder), join(folder, "to.db")].map((file) => {
    const [table] = readSqlite(file, "SELECT name FROM sqlite_schema WHERE name LIKE '%plants'");
    return String(table?.["name"]);
  });
  const isFilled = target === "plants" && plantsIn(join(folder, "to.db")).length === 3;
  if (isFilled) return source === "plants" ? "both stores are usable" : "moved";
  const [count] = readSqlite(fileIn(folder), `SELECT count(*) AS plants FROM ${source}`);
  return count?.["plants"] === 3n ? "not moved" : "plants are missing";
}

const database = (folder: string): readonly string[] => ["--database-url", `sqlite:${fileIn(folder)}`];

// oxfmt-ignore
const changes: readonly Change[] = [
  { name: "migrate", fill: () => undefined, words: (folder) => ["migrate", ...database(folder)],
    read: (folder) => storeIn(fileIn(folder)), before: undefined, after: [] },
  { name: "import", fill: (folder) => {
      createMissingStore(fileIn(folder));
      writeFileSync(join(folder, "ids"), "7\n8\n");
    }, words: (folder) => ["import", join(folder, "ids"), ...database(folder)],
    read: (folder) => storeIn(fileIn(folder)), before: [], after: [7n, 8n] },
  { name: "move", fill: (folder) => {
      fillStore(folder, 1n, 3n);
      createMissingStore(join(folder, "to.db"));
    }, words: (folder) => ["move", `sqlite:${fileIn(folder)}`, `sqlite:${join(folder, "to.db")}`], read: moveStateIn,
    before: "not moved", after: "moved" },
  { name: "backup", fill: (folder) => fillStore(folder, 1n, 3n),
    words: (folder) => ["backup", join(folder, "copy.db"), ...database(folder)],
    read: (folder) => (existsSync(join(folder, "copy.db")) ? plantsIn(join(folder, "copy.db")) : undefined),
    before: undefined, after: [1n, 2n, 3n] },
  { name: "a restore without a store", fill: fillBackup,
    words: (folder) => ["restore", join(folder, "backup.db"), ...database(folder)],
    read: (folder) => (existsSync(fileIn(folder)) ? plantsIn(fileIn(folder)) : undefined), before: undefined,
    after: [1n, 2n, 3n] },
  { name: "a restore over a store with a crash's log", fill: fillCrashed,
    words: (folder) => ["restore", join(folder, "backup.db"), ...database(folder)],
    read: (folder) => plantsIn(fileIn(folder)), before: [7n, 9n], after: [1n, 2n, 3n] },
  { name: "a restore over a log without a database file", fill: (folder) => {
      fillCrashed(folder);
      rmSync(fileIn(folder));
    }, words: (folder) => ["restore", join(folder, "backup.db"), ...database(folder)],
    read: (folder) => (existsSync(fileIn(folder)) ? plantsIn(fileIn(folder)) : undefined), before: undefined,
    after: [1n, 2n, 3n] },
  { name: "a restore over a damaged file with a log", fill: (folder) => {
      fillBackup(folder);
      leaveTruncatedFile(fileIn(folder));
    }, words: (folder) => ["restore", join(folder, "backup.db"), ...database(folder)],
    read: (folder) => plantsUnlessDamaged(fileIn(folder)), before: "gone or damaged", after: [1n, 2n, 3n] },
  { name: "token create without a token file", fill: () => undefined,
    words: (folder) => ["token", "create", "bob", "--file", join(folder, "tokens")], read: tokensIn, before: undefined,
    after: ["bob"] },
  { name: "token create", fill: fillTokens,
    words: (folder) => ["token", "create", "bob", "--file", join(folder, "tokens")], read: tokensIn, before: ["ann"],
    after: ["ann", "bob"] },
  { name: "token revoke",
    fill: (folder) => writeFileSync(join(folder, "tokens"), `${tokenLine}sha256:${"b".repeat(64)} bob - -\n`),
    words: (folder) => ["token", "revoke", "bob", "--file", join(folder, "tokens")], read: tokensIn,
    before: ["ann", "bob"], after: ["ann"] },
];

/** Returns every state after a power loss. The kernel may have written any content and any names in time. */
function afterLossOfPower(disk: ForgetfulDisk, read: Change["read"]): unknown[] {
  const everything = [""];
  return (["synced", "current"] as const).flatMap((names) =>
    [[], [".db"], everything].map((written) => read(disk.losePower(written, names))),
  );
}

const main = join(projectFolder, "src/command/main.ts");

describe.runIf(canForget())("a power loss", () => {
  test.each(changes)("during $name leaves the old or the new state", { timeout }, async (row) => {
    const { fill, words, read, before, after } = row;
    using disk = new ForgetfulDisk(fill);
    const between: unknown[] = [];
    const { exitCode, stderr } = await disk.runInSteps([main, ...words(disk.folder)], () =>
      between.push(...afterLossOfPower(disk, read)),
    );
    expect(exitCode, stderr).toBe(0);
    expect(between).toContainEqual(before);
    for (const state of between) expect([before, after]).toContainEqual(state);
    for (const state of afterLossOfPower(disk, read)) expect(state).toEqual(after);
  });
});
