import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { projectFolder } from "@protoport/testing/process";
import { sourceFiles } from "../../protoport/testing/src/source-files.ts";

const root = join(projectFolder, "src/stores");
const files = sourceFiles(root);
const allowed: Readonly<Record<string, readonly string[]>> = {
  contract: [],
  queue: ["contract"],
  records: ["contract"],
  sqlite: ["contract", "queue", "records"],
  // The file that registers Citus also imports its index.
  postgres: ["contract", "queue", "records"],
  citus: ["contract", "postgres"],
};

const folderOf = (file: string): string => file.split("/")[0] ?? "";

function importsOf(file: string): string[] {
  const specifiers = readFileSync(join(root, file), "utf8").matchAll(/(?:from|import|import\()\s*"(\.[^"]+)"/g);
  const imported = [...specifiers].map(([, specifier = ""]) => join(dirname(file), specifier));
  return imported.filter((path) => !path.startsWith("..") && folderOf(path) !== folderOf(file));
}

test("store folders import only lower folders, except that one file imports Citus", () => {
  const wrong = files
    .filter((file) => file !== "index.ts")
    .flatMap((file) => importsOf(file).map((path) => ({ file, path })))
    .filter(({ file, path }) => allowed[folderOf(file)]?.includes(folderOf(path)) !== true);
  const shown = wrong.map(({ file, path }) => `${file} -> ${folderOf(path)}`);
  expect(shown).toEqual(["postgres/table-location.ts -> citus"]);
});

test("index.ts is the only file outside the store folders", () =>
  expect(files.filter((file) => !Object.hasOwn(allowed, folderOf(file)))).toEqual(["index.ts"]));
