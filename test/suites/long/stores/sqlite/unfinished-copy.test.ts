import { spawnSync } from "node:child_process";
import { mkdirSync, readdirSync, utimesSync, writeFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { backUp, restore } from "../../../../../src/stores/sqlite/backup.ts";
import { openDatabase } from "../../../../../src/stores/sqlite/database.ts";
import { recordFileSteps } from "../../../../support/plants/file-steps.ts";
import { plantsIn } from "../../../../support/plants/sqlite-file.ts";
import { createTempFolder, type TempFolder } from "@protoport/testing/process";

interface Command {
  readonly name: string;
  /** A call in a child process' program. `path` is the file that the command writes. */
  readonly code: (source: string, path: string) => string;
  readonly run: (source: string, path: string) => void;
}

const commands: readonly Command[] = [
  { name: "backup", code: (source, path) => `backUp("${source}", "${path}")`, run: backUp },
  {
    name: "restore",
    code: (source, path) => `restore("${path}", "${source}")`,
    run: (source, path) => restore(path, source),
  },
];

const pairs = commands.flatMap((first) => commands.map((next) => ({ first, next })));

/** Creates a store with plants 1 to 3. */
function createPlants(folder: TempFolder): string {
  openDatabase({ file: folder.file("plants.db"), plantsWhenCreated: { first: 1n, last: 3n } }).close();
  return folder.file("plants.db");
}

const urlOf = (path: string): string => new URL(`../../../../../${path}`, import.meta.url).href;

/** Runs a program in another process, which may call the commands. */
function runElsewhere(program: string): { signal: string | null; status: number | null; stderr: string } {
  const imports = `
    import { backUp } from "${urlOf("src/stores/sqlite/backup.ts")}";
    import { restore } from "${urlOf("src/stores/sqlite/backup.ts")}";
    import { recordFileSteps } from "${urlOf("test/support/plants/file-steps.ts")}";`;
  const args = ["--input-type=module", "-e", imports + program];
  const { signal, status, stderr } = spawnSync(process.execPath, args, { encoding: "utf8" });
  return { signal, status, stderr };
}

/** Runs a command in another process that kills itself just before the first step that starts with `step`. */
function runKilledAt(step: string, code: string): void {
  const kill = `if (step.startsWith("${step}")) process.kill(process.pid, "SIGKILL");`;
  const result = runElsewhere(`recordFileSteps((step) => { ${kill} }); ${code};`);
  expect(result).toEqual({ signal: "SIGKILL", status: null, stderr: "" });
}

function unfinishedIn(folder: TempFolder): string[] {
  return readdirSync(folder.path).filter((name) => name.includes(".unfinished"));
}

describe("an unfinished copy", () => {
  test.each(pairs)("left by a killed $first.name is removed when $next.name runs a day later", ({ first, next }) => {
    using folder = createTempFolder();
    const source = createPlants(folder);
    runKilledAt("sync killed.db.", first.code(source, folder.file("killed.db")));
    // A process that is killed while SQLite writes the copy also leaves a journal.
    writeFileSync(folder.file("other.db.0123456789abcdef.unfinished-journal"), "");
    const [left, dayAgo] = [unfinishedIn(folder), new Date(Date.now() - 25 * 3_600_000)];
    expect(left).toHaveLength(2);
    next.run(source, folder.file("next1.db"));
    expect(unfinishedIn(folder)).toEqual(left);
    for (const name of left) utimesSync(folder.file(name), dayAgo, dayAgo);
    next.run(source, folder.file("next2.db"));
    expect(unfinishedIn(folder)).toEqual([]);
    expect(plantsIn(folder.file("next2.db"))).toEqual([1n, 2n, 3n]);
  });

  test.each(pairs)("from a running $first.name is kept when $next.name runs", ({ first, next }) => {
    using folder = createTempFolder();
    const source = createPlants(folder);
    let kept: string[] = [];
    const runNext = (step: string): void => {
      if (!step.startsWith("sync running.db.")) return;
      const result = runElsewhere(`${next.code(source, folder.file("next.db"))};`);
      expect(result).toEqual({ signal: null, status: 0, stderr: "" });
      kept = unfinishedIn(folder);
    };
    {
      using _ = recordFileSteps(runNext);
      first.run(source, folder.file("running.db"));
    }
    expect(kept).toHaveLength(1);
    expect(unfinishedIn(folder)).toEqual([]);
    for (const name of ["running.db", "next.db"]) expect(plantsIn(folder.file(name))).toEqual([1n, 2n, 3n]);
  });

  test.each(commands)("is removed by $name even if another one cannot be removed", ({ run }) => {
    using folder = createTempFolder();
    const source = createPlants(folder);
    const [kept, removed] = ["a.db.0123456789abcdef.unfinished", "b.db.0123456789abcdef.unfinished"];
    // A file that even root cannot remove.
    mkdirSync(folder.file(kept));
    writeFileSync(folder.file(removed), "");
    for (const name of [kept, removed]) utimesSync(folder.file(name), 0, 0);
    run(source, folder.file("copy.db"));
    expect(unfinishedIn(folder)).toEqual([kept]);
  });

  test("is kept if its name has another pattern", () => {
    using folder = createTempFolder();
    const source = createPlants(folder);
    const others = ["a.db.unfinished", "b.db.12.unfinished"];
    for (const name of others) {
      writeFileSync(folder.file(name), "");
      utimesSync(folder.file(name), 0, 0);
    }
    backUp(source, folder.file("copy.db"));
    expect(unfinishedIn(folder)).toEqual(others);
  });
});
