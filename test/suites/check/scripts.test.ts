import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { projectFiles, projectFolder } from "@protoport/testing/process";
import { suites } from "../suites.ts";

const read = (file: string): string => readFileSync(join(projectFolder, file), "utf8");
const scripts = Object.keys(JSON.parse(read("package.json")).scripts);
// Without pages about a user's project, which has other scripts.
const pages = projectFiles().filter((file) => !/package-lock\.json$|^test\/package\/|^docs\/tutorial\.md$/.test(file));

test("every npm script that a project file mentions exists", () => {
  const unknown = pages.flatMap((file) =>
    [...read(file).matchAll(/\bnpm run (?:(?:-s|--silent) )?([a-z][\w:-]*)/g)]
      .filter(([, name = ""]) => !scripts.includes(name))
      .map(([command]) => `${file}: ${command}`),
  );
  expect(unknown).toEqual([]);
});

test("every suite that a project file mentions exists", () => {
  const names = suites.map(({ name }) => name);
  const unknown = pages.flatMap((file) =>
    [...read(file).matchAll(/\bnpm run (?:(?:-s|--silent) )?suite -- ((?:[a-z][\w-]* ?)+)/g)]
      .filter(([, words = ""]) =>
        words
          .trim()
          .split(" ")
          .some((name) => !names.includes(name)),
      )
      .map(([command]) => `${file}: ${command}`),
  );
  expect(unknown).toEqual([]);
});
