import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { buildLimitMs, type ProgramResult, projectFolder, runProgram } from "@protoport/testing/process";
import { ProjectCopy } from "../../../tools/mutants/project-copy.ts";

// Follows CONTRIBUTING.md's recipe for a new store on a copy of the project, with a kind that exists nowhere.

const page = readFileSync(join(projectFolder, "CONTRIBUTING.md"), "utf8");
const recipe = page.slice(page.indexOf("**A new store**"), page.indexOf("**A schema change**"));
const index = "src/stores/index.ts";
const urls = "src/server/database-url.ts";
const commands = "test/stores/contract/commands.test.ts";

/** The kind's row in each file, and the existing code before which the row is inserted. */
const rows: Readonly<Record<string, { readonly row: string; readonly before: string }>> = {
  [index]: {
    row: `herbarium: {
    names: { kind: required, sheet: required },
    system: "herbarium",
    isShared: false,
    copiesOf: () => "scissors",
    openStore: ({ sheet }) => Promise.reject(new StoreOpenError(\`pressed: \${sheet}\`)),
    openDatabase: ({ sheet }) => Promise.reject(new StoreOpenError(\`pressed: \${sheet}\`)),
    check: ({ sheet }) => Promise.reject(new StoreOpenError(\`pressed: \${sheet}\`)),
    migrate: ({ sheet }) => Promise.reject(new StoreOpenError(\`pressed: \${sheet}\`)),
    openMovable: ({ sheet }) => Promise.reject(new StoreOpenError(\`pressed: \${sheet}\`)),
  },
  `,
    before: "memory: {\n    names:",
  },
  [urls]: {
    row: `herbarium: {
    form: "herbarium:<sheet>",
    pattern: /^herbarium:/,
    read: (text) => parsed({ kind: "herbarium", sheet: text.slice("herbarium:".length) }),
  },
  `,
    before: "memory: { form:",
  },
  [commands]: { row: 'herbarium: () => Promise.reject(new Error("no sheet")),\n  ', before: "sqlite: async () => {" },
};

let copy: ProjectCopy;
beforeAll(() => {
  copy = new ProjectCopy(projectFolder);
  copy.replace(
    index,
    read(index)
      .replace(" | PostgresLocation;", ' | PostgresLocation | { readonly kind: "herbarium"; readonly sheet: string };')
      .replace("import type { PlantStore }", 'import { StoreOpenError } from "./contract/store-options.ts";\n$&'),
  );
});
afterAll(() => copy[Symbol.dispose]());
const read = (path: string): string => readFileSync(join(copy.folder, path), "utf8");

const runInCopy = async (program: string, ...words: readonly string[]): Promise<ProgramResult> =>
  await runProgram(program, words, { folder: copy.folder, limitMs: buildLimitMs });

async function filesWithErrors(): Promise<string[]> {
  const { stdout } = await runInCopy("npm", "run", "typecheck");
  return [...new Set([...stdout.matchAll(/^([\w/.-]+)\(\d+,\d+\): error /gm)].map(([, path = ""]) => path))].toSorted();
}

test("the compiler reports every file that lacks a new store kind", { timeout: buildLimitMs }, async () => {
  const files = await filesWithErrors();
  expect(files).toEqual(Object.keys(rows).toSorted());
  for (const file of files) expect(recipe).toContain(`\`${file}\``);
});

test("a new store kind works by its rows alone", { timeout: buildLimitMs }, async () => {
  for (const [path, { row, before }] of Object.entries(rows)) {
    expect(read(path).split(before), `${path} has ${before} once`).toHaveLength(2);
    const text = read(path).replace(before, () => row + before);
    copy.replace(path, text);
  }
  expect(await filesWithErrors()).toEqual([]);
  const main = "src/command/main.ts";
  const store = ["--database-url", "herbarium:fern"];
  const results = await Promise.all(
    [
      ["serve", ...store, "--workers", "2"],
      ["serve", ...store],
      ["check", ...store],
      ["migrate", ...store],
      ["export", ...store],
      ["backup", ...store, "copy"],
      ["restore", ...store, "copy"],
    ].map(async (words) => {
      const { exitCode, stderr } = await runInCopy(process.execPath, main, ...words);
      return [words[0], exitCode, stderr];
    }),
  );
  const pressed = expect.stringContaining("pressed: fern");
  const scissors = expect.stringContaining("use scissors instead");
  // oxfmt-ignore
  expect(results).toEqual([
    ["serve", 78, expect.stringContaining("PLANTSTORE_WORKERS must be 1 unless several processes can use the store")],
    ["serve", 1, pressed], ["check", 1, pressed], ["migrate", 1, pressed], ["export", 1, pressed],
    ["backup", 2, scissors], ["restore", 2, scissors],
  ]);
});
