import { writeFileSync } from "node:fs";
import { expect, test } from "vitest";
import { createTempFolder } from "@protoport/testing/process";
import { openClient, runSql, startPostgresOfFile } from "../../../support/plants/index.ts";
import { runCommand, startCommandLine } from "../../../support/process/index.ts";

const postgres = await startPostgresOfFile();
/** More ids than two batches have. The input stays open, like a pipe whose writer is slow. */
const ids = Array.from({ length: 300_000 }, (_, i) => i + 1).join("\n");

test.each<{ store: "sqlite" | "postgres"; signal: NodeJS.Signals; code: number }>([
  { store: "sqlite", signal: "SIGINT", code: 130 },
  { store: "sqlite", signal: "SIGTERM", code: 143 },
  { store: "postgres", signal: "SIGINT", code: 130 },
  { store: "postgres", signal: "SIGTERM", code: 143 },
])("an import into $store prints its count on $signal, and is repeatable", async ({ store, signal, code }) => {
  using folder = createTempFolder();
  const url = store === "sqlite" ? `sqlite:${folder.file("plants.db")}` : await postgres.createSchema();
  const environment = { DATABASE_URL: url };
  await runCommand(["migrate"], environment);
  const exported = async (): Promise<number> => (await runCommand(["export"], environment)).out.length;
  await using command = startCommandLine(["import"], folder.path, environment);
  command.process.stdin.on("error", () => {}).write(ids);
  await expect.poll(exported).toBeGreaterThan(0);
  expect(await command.stop(signal)).toBe(code);
  const [, imported = "", added] =
    /^stopped after \S+ s; imported the first (\S+) ids: (\d+) added, 0 already present, 0 skipped/m.exec(
      command.stderr(),
    ) ?? [];
  expect(command.stdout()).toBe("");
  expect(Number(added)).toBe(await exported());
  expect(imported.replaceAll(",", "")).toBe(added);
  const want = [`${300_000 - Number(added)} added, ${added} already present, 0 skipped (deleted before)`];
  expect((await runCommand(["import"], environment, ids)).out).toEqual(want);
});

test.each([
  ["exits after its batch with the signal's code", false, 143, /^stopped after .* 0 already present/],
  ["reports a store error that stops it earlier", true, 1, /^plantstore: cannot use/m],
])("an interrupted import that waits for a lock %s", async (_name, fails, code, text) => {
  using folder = createTempFolder();
  const url = await postgres.createSchema();
  await runCommand(["migrate"], { DATABASE_URL: url });
  writeFileSync(folder.file("ids"), ids);
  const holder = await openClient(url, "BEGIN; LOCK TABLE plants IN ACCESS EXCLUSIVE MODE");
  await using command = startCommandLine(["import", "ids"], folder.path, { DATABASE_URL: url });
  const waiting = "SELECT pid FROM pg_locks WHERE relation = 'plants'::regclass AND NOT granted";
  await expect.poll(() => runSql(url, waiting)).toHaveLength(1);
  command.process.kill("SIGTERM");
  if (fails) await runSql(url, `SELECT pg_terminate_backend(pid) FROM (${waiting}) AS waiting`);
  await holder.end();
  expect(await command.end()).toBe(code);
  expect(command.stderr()).toMatch(text);
  expect(command.stderr()).not.toContain("AbortError");
});
