import { expect, test } from "vitest";
import { openSqliteStore } from "../../../../src/stores/index.ts";
import { openDatabase } from "../../../../src/stores/sqlite/database.ts";
import { createTempFolder, type TempFolder } from "../../../../protoport/testing/src/process/temp-folder.ts";
import { deleteCall } from "../../../support/plants/delete-call.ts";
import { plantsIn } from "../../../support/plants/sqlite-file.ts";
import { runCommand } from "../../../support/process/run-command.ts";

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

test("move prints what it moved, and refuses to run again", async () => {
  using folder = createTempFolder();
  const { from, to } = await createStores(folder);
  const words = ["move", `sqlite:${from}`, `sqlite:${to}`];
  expect(await runCommand(words)).toEqual({
    exitCode: 0,
    out: counts,
    err: [expect.stringMatching(/^moved \S+from\.db to \S+to\.db in \d+\.\d s; do not serve \S+from\.db any more$/)],
  });
  expect(await runCommand(words)).toEqual({
    exitCode: 1,
    out: [],
    err: [
      `plantstore: ${to} has 2 plants, 1 deletion records and 1 idempotency keys, as many as the source; ` +
        'an earlier move may have succeeded: compare "export" and "deletions" of both; nothing was moved',
    ],
  });
  expect([plantsIn(from), plantsIn(to)]).toEqual([
    [1n, 3n],
    [1n, 3n],
  ]);
});

test.each(["from.db", "to.db"])("move fails while a server uses %s, and changes nothing", async (name) => {
  using folder = createTempFolder();
  const { from, to } = await createStores(folder);
  const store = await openSqliteStore({ file: folder.file(name) });
  const { exitCode, out, err } = await runCommand(["move", `sqlite:${from}`, `sqlite:${to}`]);
  await store.close();
  expect({ exitCode, out, err }).toEqual({
    exitCode: 1,
    out: [],
    err: [`plantstore: another process has ${folder.file(name)} open; stop the server first`],
  });
  expect(plantsIn(to)).toEqual([]);
});

test.each([
  { name: "a missing target", words: ["sqlite:a.db"], problem: "usage: plantstore move FROM TO" },
  { name: "a memory: source", words: ["memory:", "sqlite:a.db"], problem: "FROM must not be memory:" },
  { name: "a MySQL target", words: ["sqlite:a.db", "mysql://ann:secret@db/p"], problem: "TO must be" },
  { name: "an empty source URL", words: ["", "sqlite:a.db"], problem: "FROM must be set" },
])("$name is refused by move", async ({ words, problem }) => {
  const { exitCode, out, err } = await runCommand(["move", ...words]);
  expect({ exitCode, out, err: err.join("\n") }).toEqual({
    exitCode: 2,
    out: [],
    err: expect.stringContaining(problem),
  });
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
