import { mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { plantsIn } from "../../../support/plants/sqlite-file.ts";
import { type Ended, runCommand, startCommandLine } from "../../../support/process/index.ts";
import { createTempFolder, type TempFolder } from "@protoport/testing/process";

/** A file system state without a store at its path. */
interface MissingStore {
  readonly name: string;
  readonly make: (folder: TempFolder) => void;
  /** What every command except `migrate` reports, after the file's name. */
  readonly problem: (folder: TempFolder) => string;
  readonly isRefusedByMigrate?: boolean;
}

const hint =
  'only if this is a new store, run "plantstore migrate" to create it; otherwise correct the location, or, only if no server has it open, restore it';

// oxfmt-ignore
const missingStores: readonly MissingStore[] = [
  { name: "a missing file", make: () => undefined, problem: ({ path }) => `file not found in ${path}: ${hint}` },
  { name: "an empty file", make: (folder) => writeFileSync(folder.file("plants.db"), "", { mode: 0o600 }),
    problem: () => `it does not contain a plant store yet: ${hint}` },
  { name: "a database without tables", make: (folder) => {
      writeFileSync(folder.file("plants.db"), "", { mode: 0o600 });
      using db = new DatabaseSync(folder.file("plants.db"));
      db.exec("PRAGMA user_version = 1");
    }, problem: () => `it does not contain a plant store yet: ${hint}` },
  { name: "a folder", make: (folder) => mkdirSync(folder.file("plants.db")), problem: () => "the path is a directory",
    isRefusedByMigrate: true },
  { name: "a dangling symbolic link", make: (folder) => symlinkSync("volume.db", folder.file("plants.db")),
    problem: () => "the path is a symbolic link to volume.db, which does not exist", isRefusedByMigrate: true },
];

/** The commands that require a store, and the setting in their message if they also read its URL from a file. */
// oxfmt-ignore
const commands: readonly { words: readonly string[]; setting?: string }[] = [
  { words: ["serve", "--port", "0"], setting: "DATABASE_URL: " }, { words: ["check"], setting: "DATABASE_URL: " },
  { words: ["import"] }, { words: ["export"] }, { words: ["deletions"] }, { words: ["backup", "copy.db"] },
];

/** Runs a command on a store. `serve` runs in a separate process, because its signal handlers are never removed. */
async function run(words: readonly string[], folder: TempFolder): Promise<Ended> {
  const environment = { DATABASE_URL: `sqlite:${folder.file("plants.db")}`, LOG_LEVEL: "silent" };
  const inFolder = words.map((word) => (word === "copy.db" ? folder.file(word) : word));
  if (words[0] !== "serve") return await runCommand(inFolder, environment);
  await using server = startCommandLine(words, folder.path, environment);
  return { exitCode: (await server.end()) ?? Number.NaN, out: linesOf(server.stdout()), err: linesOf(server.stderr()) };
}

const linesOf = (text: string): string[] => text.split("\n").slice(0, -1);

const contentOf = (folder: TempFolder): readonly (readonly [name: string, bytes: string | undefined])[] =>
  readdirSync(folder.path).map((name) => [
    name,
    statSync(folder.file(name), { throwIfNoEntry: false })?.isFile() === true
      ? readFileSync(folder.file(name), "latin1")
      : undefined,
  ]);

describe.each(missingStores)("with $name instead of a store", ({ make, problem }) => {
  test.each(commands)("plantstore $words.0 fails with a hint, and changes nothing", async ({ words, setting }) => {
    using folder = createTempFolder();
    make(folder);
    const before = contentOf(folder);
    const message = `plantstore: ${setting ?? ""}cannot open ${folder.file("plants.db")}: ${problem(folder)}`;
    expect(await run(words, folder)).toEqual({ exitCode: 1, out: [], err: [message] });
    expect(contentOf(folder)).toEqual(before);
  });
});

test.each(missingStores.filter(({ isRefusedByMigrate }) => isRefusedByMigrate === true))(
  "plantstore migrate refuses $name instead of a store, and does not change it",
  async ({ make, problem }) => {
    using folder = createTempFolder();
    make(folder);
    const before = contentOf(folder);
    const { exitCode, err } = await run(["migrate"], folder);
    const want = { exitCode: 1, err: [`plantstore: cannot open ${folder.file("plants.db")}: ${problem(folder)}`] };
    expect({ exitCode, err }).toEqual(want);
    expect(contentOf(folder)).toEqual(before);
  },
);

const migrated = missingStores.filter(({ isRefusedByMigrate }) => isRefusedByMigrate !== true);
test.each(migrated)("plantstore migrate turns $name into a store", async ({ make }) => {
  using folder = createTempFolder();
  make(folder);
  const { exitCode, err } = await run(["migrate"], folder);
  const want = { exitCode: 0, err: [expect.stringMatching(/^migrated the schema from version 0/)] };
  expect({ exitCode, err }).toEqual(want);
  const file = folder.file("plants.db");
  expect((statSync(file).mode & 0o777).toString(8)).toBe("600");
  expect(readdirSync(folder.path)).toEqual(["plants.db"]);
  expect(plantsIn(file)).toEqual([]);
});

test("commands open a store through a symbolic link", async () => {
  using folder = createTempFolder();
  symlinkSync("volume.db", folder.file("plants.db"));
  await runCommand(["migrate"], { DATABASE_URL: `sqlite:${folder.file("volume.db")}` });
  const database = { DATABASE_URL: `sqlite:${folder.file("plants.db")}` };
  expect((await runCommand(["migrate"], database)).exitCode).toBe(0);
  expect((await runCommand(["import"], database, "7\n")).exitCode).toBe(0);
  expect((await runCommand(["check"], database)).exitCode).toBe(0);
  expect(await runCommand(["export"], database)).toEqual({ exitCode: 0, out: ["7"], err: [] });
  expect(readdirSync(folder.path).toSorted()).toEqual(["plants.db", "volume.db"]);
});
