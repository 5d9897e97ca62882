import { writeFileSync } from "node:fs";
import { expect, test } from "vitest";
import { openSqliteStore } from "../../src/stores/index.ts";
import { openDatabase } from "../../src/stores/sqlite/database.ts";
import { deleteCall } from "../support/plants/delete-call.ts";
import { runCommand } from "../support/process/run-command.ts";
import { closing, createTempFolder, type TempFolder } from "@protoport/testing/process";

/** Creates a store in the folder with plants 1 to 3, and deletes some of them. */
async function makeStore(folder: TempFolder, deleted: readonly bigint[] = []): Promise<{ DATABASE_URL: string }> {
  const file = folder.file("plants.db");
  openDatabase({ file, plantsWhenCreated: { first: 1n, last: 3n } }).close();
  if (deleted.length > 0) await deletePlants(file, deleted);
  return { DATABASE_URL: `sqlite:${file}` };
}

async function deletePlants(file: string, ids: readonly bigint[]): Promise<void> {
  await using store = closing(await openSqliteStore({ file }));
  for (const id of ids) await store.delete(id, deleteCall());
}

test("export waits for a slow reader", async () => {
  using folder = createTempFolder();
  const environment = await makeStore(folder);
  const ids = Array.from({ length: 25_000 }, (_, index) => String(index + 1));
  await runCommand(["import"], environment, ids.join("\n"));
  expect(await runCommand(["export"], environment)).toEqual({ exitCode: 0, out: ids, err: [] });
});

test("import adds new plants, and reports present and deleted ones", async () => {
  using folder = createTempFolder();
  const environment = await makeStore(folder, [2n]);
  const imported = await runCommand(["import"], environment, "1\n2\n9223372036854775807\n-9223372036854775808\n");
  expect(imported).toEqual({
    exitCode: 0,
    out: ["2 added, 1 already present, 1 skipped (deleted before)"],
    err: [expect.stringMatching(/^imported 4 ids in \d+\.\d s$/)],
  });
  const { out } = await runCommand(["export"], environment);
  expect(out).toEqual(["-9223372036854775808", "1", "3", "9223372036854775807"]);
});

test("import --restore also adds deleted plants", async () => {
  using folder = createTempFolder();
  const { out } = await runCommand(["import", "--restore"], await makeStore(folder, [2n]), "2\n");
  expect(out).toEqual(["1 added, 0 already present, 0 skipped (deleted before)"]);
});

test("import reads a file", async () => {
  using folder = createTempFolder();
  const environment = await makeStore(folder);
  writeFileSync(folder.file("ids"), "7\r\n\n8");
  const { out } = await runCommand(["import", folder.file("ids")], environment);
  expect(out).toEqual(["2 added, 0 already present, 0 skipped (deleted before)"]);
});

test("import reports a line that is not an id, and stores nothing", async () => {
  using folder = createTempFolder();
  const environment = await makeStore(folder);
  const { exitCode, out, err } = await runCommand(["import"], environment, "7\n08\n9\n");
  const want = { exitCode: 1, out: [], err: [expect.stringContaining('line 2 is not a plant id: "08"')] };
  expect({ exitCode, out, err }).toEqual(want);
  expect((await runCommand(["export"], environment)).out).toEqual(["1", "2", "3"]);
});

test("import reports how many ids it imported before it stopped", async () => {
  using folder = createTempFolder();
  const ids = Array.from({ length: 250_000 }, (_, i) => i);
  const shown: string[] = [];
  const terminal = { progress: (line: string) => void shown.push(line) };
  const { err } = await runCommand(["import"], await makeStore(folder), [...ids, 10_000, "x"].join("\n"), terminal);
  expect(shown).toEqual(["250,000 ids", ""]);
  expect(err).toEqual([
    expect.stringMatching(
      /^stopped after \d+\.\d s; imported the first 250,000 ids: 249997 added, 3 already present, 0 skipped/,
    ),
    expect.stringContaining("line 250002 is not a plant id"),
  ]);
});

test.each([
  { signal: "SIGINT", exitCode: 130 },
  { signal: "SIGTERM", exitCode: 143 },
] as const)("import reports zero ids on $signal before its first batch", async ({ signal, exitCode }) => {
  using folder = createTempFolder();
  const options = { stopSignal: () => Promise.resolve(signal) };
  const stopped = await runCommand(["import"], await makeStore(folder), "7\n", options);
  const text = /^stopped after \d+\.\d s; imported the first 0 ids: 0 added, 0 already present/;
  expect(stopped).toEqual({ exitCode, out: [], err: [expect.stringMatching(text)] });
});

test("import fails at an invalid id that it reads after SIGTERM", async () => {
  using folder = createTempFolder();
  const { promise: stopped, resolve } = Promise.withResolvers<NodeJS.Signals>();
  const { exitCode, err } = await runCommand(["import"], await makeStore(folder), "", {
    stopSignal: () => stopped,
    input: async function* () {
      resolve("SIGTERM");
      await stopped;
      yield Buffer.from("x\n");
    },
  });
  expect({ exitCode, last: err.at(-1) }).toEqual({ exitCode: 1, last: 'plantstore: line 1 is not a plant id: "x"' });
});

test("deletions prints JSON records, oldest first, with ids as strings", async () => {
  using folder = createTempFolder();
  const { exitCode, out } = await runCommand(["deletions"], await makeStore(folder, [3n, 1n]));
  expect({ exitCode, lines: out.map((line): unknown => JSON.parse(line)) }).toEqual({
    exitCode: 0,
    lines: ["3", "1"].map((plantId) => ({
      plantId,
      deletedAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
      subject: expect.any(String),
      requestId: expect.any(String),
      batch: expect.any(String),
    })),
  });
});

test("deletions --since omits older records", async () => {
  using folder = createTempFolder();
  const environment = await makeStore(folder, [3n]);
  const since = async (time: string) => (await runCommand(["deletions", "--since", time], environment)).out;
  const all = await since("2020-01-01");
  const { deletedAt } = JSON.parse(String(all));
  expect([all.length, await since("24h"), await since(deletedAt)]).toEqual([1, all, all]);
  expect(await since("2999-01-01T00:00:00Z")).toEqual([]);
});

test("deletions --plant omits other plants' records", async () => {
  using folder = createTempFolder();
  const environment = await makeStore(folder, [3n, 1n]);
  const { out } = await runCommand(["deletions", "--plant", "1"], environment);
  expect(out).toEqual([expect.stringContaining('"plantId":"1"')]);
  expect((await runCommand(["deletions", "--plant=-1"], environment)).out).toEqual([]);
});

test("backup creates a copy that is itself a store", async () => {
  using folder = createTempFolder();
  const copy = folder.file("copy.db");
  const { exitCode, err } = await runCommand(["backup", copy], await makeStore(folder, [2n]));
  const exported = await runCommand(["export", "--database-url", `sqlite:${copy}`]);
  expect({ exitCode, out: exported.out }).toEqual({ exitCode: 0, out: ["1", "3"] });
  expect(err).toEqual([expect.stringMatching(/^copied .* to .*copy\.db$/)]);
});

test("migrate creates an empty store", async () => {
  using folder = createTempFolder();
  const url = `sqlite:${folder.file("new.db")}`;
  expect(await runCommand(["migrate", "--database-url", url])).toEqual({
    exitCode: 0,
    out: [],
    err: [expect.stringMatching(/^migrated the schema from version 0 to version 1 in \d+\.\d s$/)],
  });
  const again = await runCommand(["migrate", "--database-url", url]);
  const nothing = "nothing to migrate: this release supports version 1 of the schema";
  expect(again).toEqual({ exitCode: 0, out: [], err: [nothing] });
  expect(await runCommand(["export", "--database-url", url])).toEqual({ exitCode: 0, out: [], err: [] });
});

const commands = [["import"], ["export"], ["deletions"], ["backup", "copy.db"], ["migrate"]];

test.each(commands)("%s refuses to run without a database", async (...words) => {
  const { exitCode, err } = await runCommand(words);
  const want = { exitCode: 78, problem: expect.stringContaining("DATABASE_URL must be set") };
  expect({ exitCode, problem: err[1] }).toEqual(want);
});

test("commands read the database URL from a file", async () => {
  using folder = createTempFolder();
  writeFileSync(folder.file("url"), "postgres://ann:secret@127.0.0.1:1/p\n");
  const { exitCode, err } = await runCommand(["export"], { DATABASE_URL_FILE: folder.file("url") });
  const want = { exitCode: 1, err: [expect.stringContaining("cannot use 127.0.0.1:1/p: connect")] };
  expect({ exitCode, err }).toEqual(want);
});

test.each(commands)("%s refuses memory:, which is in another process", async (...words) => {
  const { exitCode } = await runCommand([...words, "--database-url", "memory:"]);
  expect(exitCode).toBe(78);
});

test.each([
  { name: "a date that does not exist", words: ["deletions", "--since", "2020-02-31"] },
  { name: "a month that does not exist", words: ["deletions", "--since", "2020-13-01"] },
  { name: "an hour that does not exist", words: ["deletions", "--since", "2020-01-31T25:00:00Z"] },
  { name: "a word instead of a time", words: ["deletions", "--since", "yesterday"] },
  { name: "text before a duration", words: ["deletions", "--since", "x24h"] },
  { name: "a number without a unit", words: ["deletions", "--since", "5"] },
  { name: "an id with a leading zero", words: ["deletions", "--plant", "01"] },
  { name: "an id of more than 64 bits", words: ["deletions", "--plant", "9223372036854775808"] },
])("$name is refused by deletions", async ({ words }) => {
  expect((await runCommand(words, { DATABASE_URL: "sqlite:plants.db" })).exitCode).toBe(2);
});
