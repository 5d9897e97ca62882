import { expect, test } from "vitest";
import { openSqliteStore } from "../../src/stores/index.ts";
import { openDatabase } from "../../src/stores/sqlite/database.ts";
import { createTempFolder, type TempFolder } from "@protoport/testing/process";
import { deleteCall } from "../support/plants/delete-call.ts";
import { interruptMove } from "../support/plants/moved-stores.ts";
import { plantsIn } from "../support/plants/sqlite-file.ts";
import { runCommand } from "../support/process/run-command.ts";

/** Creates a store with plants 1 to 3, of which 2 was deleted with a key, and an empty store. */
async function createStores(folder: TempFolder): Promise<{ readonly from: string; readonly to: string }> {
  const [from, to] = [folder.file("from.db"), folder.file("to.db")];
  openDatabase({ file: from, plantsWhenCreated: { first: 1n, last: 3n } }).close();
  openDatabase({ file: to, migrates: true }).close();
  const store = await openSqliteStore({ file: from });
  await store.delete(2n, deleteCall({ idempotencyKey: "key" }));
  await store.close();
  return { from, to };
}

const counts = ["plants: 2", "deletion records: 1", "idempotency keys: 1"];

test("move prints what it moved, and moves nothing when repeated", async () => {
  using folder = createTempFolder();
  const { from, to } = await createStores(folder);
  const words = ["move", `sqlite:${from}`, `sqlite:${to}`];
  expect(await runCommand(words)).toEqual({
    exitCode: 0,
    out: counts,
    err: [expect.stringMatching(/^moved \S+from\.db to \S+to\.db in \d+\.\d s$/)],
  });
  const want = { exitCode: 0, out: [], err: [`nothing to move: an earlier run has moved ${from} to ${to}`] };
  expect(await runCommand(words)).toEqual(want);
  expect(plantsIn(to)).toEqual([1n, 3n]);
});

test.each([
  { name: "a move", to: "to.db", exitCode: 0, shown: ["1 deletion records", "2 plants", ""] },
  { name: "a move to a store that is not empty", to: "full.db", exitCode: 1, shown: [""] },
])("$name clears its progress", async ({ to, exitCode, shown }) => {
  using folder = createTempFolder();
  const { from } = await createStores(folder);
  openDatabase({ file: folder.file("full.db"), plantsWhenCreated: { first: 1n, last: 1n } }).close();
  const lines: string[] = [];
  const progress = (line: string): void => void lines.push(line);
  const result = await runCommand(["move", `sqlite:${from}`, `sqlite:${folder.file(to)}`], {}, "", { progress });
  expect([result.exitCode, lines]).toEqual([exitCode, shown]);
});

test("commands that only read use a moved store, and serve, check and import refuse it", async () => {
  using folder = createTempFolder();
  const { from, to } = await createStores(folder);
  await runCommand(["move", `sqlite:${from}`, `sqlite:${to}`]);
  const run = (...words: string[]) => runCommand(words, { DATABASE_URL: `sqlite:${from}` });
  expect(await run("export")).toEqual({ exitCode: 0, out: ["1", "3"], err: [] });
  expect(await run("deletions")).toMatchObject({ exitCode: 0, out: [expect.stringContaining('"plantId":"2"')] });
  expect(await run("backup", folder.file("copy.db"))).toMatchObject({ exitCode: 0 });
  const refusal = [expect.stringMatching(/it was moved to \S+to\.db at \S+: use that store, or undo/)];
  expect(await run("serve")).toMatchObject({ exitCode: 1, err: refusal });
  expect(await run("check")).toMatchObject({ exitCode: 1, err: refusal });
  expect(await run("import", from)).toMatchObject({ exitCode: 1, err: refusal });
});

test("migrate --reopen undoes only the interrupted move of FROM to TO", async () => {
  using folder = createTempFolder();
  const { from, to } = await createStores(folder);
  await interruptMove({ kind: "sqlite", path: from }, { kind: "sqlite", path: to });
  using second = createTempFolder();
  const others = await createStores(second);
  await interruptMove({ kind: "sqlite", path: others.from }, { kind: "sqlite", path: others.to });
  const want = { exitCode: 1, err: [expect.stringContaining("not the target of the interrupted move")] };
  expect(await runCommand(["migrate", "--reopen", `sqlite:${others.from}`, `sqlite:${to}`])).toMatchObject(want);
  const words = ["migrate", "--reopen", `sqlite:${from}`, `sqlite:${to}`];
  expect(await runCommand(words)).toEqual({ exitCode: 0, out: [], err: [`reopened ${to} and ${from}`] });
  expect([plantsIn(from), plantsIn(to)]).toEqual([[1n, 3n], []]);
  expect(await runCommand(words)).toEqual({
    exitCode: 1,
    out: [],
    err: [`plantstore: ${to}: no interrupted move to it is known; nothing was changed`],
  });
});

// oxfmt-ignore
test.each([
  ["--reopen with only one store", ["--reopen", "sqlite:a.db"], "--reopen requires FROM and TO"],
  ["a store without --reopen", ["sqlite:a.db"], "FROM and TO require --reopen"],
  ["a third store with --reopen", ["--reopen", "sqlite:a.db", "sqlite:b.db", "--database-url", "sqlite:c.db"],
    "--reopen cannot be combined with --database-url: its stores are FROM and TO"],
])("migrate refuses %s", async (_name, words, problem) => {
  const { exitCode, err } = await runCommand(["migrate", ...words]);
  expect({ exitCode, err: err.join("\n") }).toEqual({ exitCode: 2, err: expect.stringContaining(problem) });
});

test.each([
  { name: "a missing target", words: ["sqlite:a.db"], problem: "usage: plantstore move FROM TO" },
  { name: "a memory: source", words: ["memory:", "sqlite:a.db"], problem: "FROM must not be memory:" },
  { name: "a MySQL target", words: ["sqlite:a.db", "mysql://ann:secret@db/p"], problem: "TO must be" },
  { name: "an empty source URL", words: ["", "sqlite:a.db"], problem: "FROM must be set" },
])("$name is refused by move", async ({ words, problem }) => {
  const { exitCode, out, err } = await runCommand(["move", ...words]);
  const want = { exitCode: 2, out: [], err: expect.stringContaining(problem) };
  expect({ exitCode, out, err: err.join("\n") }).toEqual(want);
  expect(err.join("\n")).not.toContain("secret");
});

test("move reports the store that does not exist", async () => {
  using folder = createTempFolder();
  const { from } = await createStores(folder);
  const missing = folder.file("missing.db");
  expect(await runCommand(["move", `sqlite:${from}`, `sqlite:${missing}`])).toEqual({
    exitCode: 1,
    out: [],
    err: [
      `plantstore: cannot open ${missing}: file not found in ${folder.path}: only if this is a new store, run "plantstore migrate" to create it; otherwise correct the location, or, only if no server has it open, restore it`,
    ],
  });
});
