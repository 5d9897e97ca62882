import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ProjectCopy } from "../../../tools/mutants/project-copy.ts";
import { projectFolder } from "../../../protoport/testing/src/process/child-program.ts";

/** The step that the next release adds to each store, whose result this release can use. */
const steps = [
  {
    file: "src/stores/postgres/schema/store-schema.ts",
    step: `{
      sql: "ALTER TABLE deletions ADD COLUMN receipt text",
      table: "deletions",
    }`,
  },
  {
    file: "src/stores/sqlite/migrate.ts",
    step: `{
      sql: \`ALTER TABLE deletions ADD COLUMN receipt TEXT;
        CREATE INDEX deletions_by_receipt ON deletions (receipt) WHERE receipt IS NOT NULL\`,
    }`,
  },
];

/** This release and the next one, as commands. */
export interface Releases extends Disposable {
  readonly old: string;
  /** The path to `plantstore` from the same commit with one more step in its migrations. */
  readonly next: string;
}

/** Creates the next release from a copy of the project. */
export function makeReleases(): Releases {
  const folder = mkdtempSync(join(tmpdir(), "releases-"));
  const copy = new ProjectCopy(projectFolder);
  for (const { file, step } of steps) {
    const text = readFileSync(join(copy.folder, file), "utf8");
    const list = /(export const migrations: readonly \w+\[\] = \[[^]*?)\];/.exec(text);
    if (list === null) throw new Error(`${file} has no list of migrations`);
    copy.replace(
      file,
      text.replace(list[0], () => `${list[1]}${step}];`),
    );
  }
  const commandOf = (name: string, project: string): string => {
    const path = join(folder, name);
    const main = join(project, "src/command/main.ts");
    writeFileSync(path, `#!/bin/sh\nexec "${process.execPath}" "${main}" "$@"\n`, { mode: 0o755 });
    return path;
  };
  return {
    old: commandOf("plantstore-old", projectFolder),
    next: commandOf("plantstore-new", copy.folder),
    [Symbol.dispose]: () => {
      copy[Symbol.dispose]();
      rmSync(folder, { recursive: true });
    },
  };
}
