import { spawnSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { backUp, restore } from "../../../src/stores/sqlite/backup.ts";
import { openDatabase } from "../../../src/stores/sqlite/database.ts";
import { recordFileSteps } from "../../support/plants/file-steps.ts";
import { plantsIn } from "../../support/plants/sqlite-file.ts";
import { createTempFolder, type TempFolder } from "@protoport/testing/process";

interface Command {
  readonly name: string;
  /** A call in a child process' program. `path` is the file that the command writes. */
  readonly code: (source: string, path: string) => string;
  readonly run: (source: string, path: string) => void;
}

// oxfmt-ignore
const commands: readonly Command[] = [
  { name: "backup", code: (source, path) => `backUp("${source}", "${path}")`, run: backUp },
  { name: "restore", code: (source, path) => `restore("${path}", "${source}")`,
    run: (source, path) => restore(path, source) },
];

const pairs = commands.flatMap((first) => commands.map((next) => ({ first, next })));

/** Creates a store with plants 1 to 3. */
function createPlants(folder: TempFolder): string {
  openDatabase({ file: folder.file("plants.db"), plantsWhenCreated: { first: 1n, last: 3n } }).close();
  return folder.file("plants.db");
}

const urlOf = (path: string): string => new URL(`../../../${path}`, import.meta.url).href;

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

const unfinishedIn = (folder: TempFolder) => readdirSync(folder.path).filter((name) => name.includes(".unfinished"));

describe("an unfinished copy", () => {
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
});
