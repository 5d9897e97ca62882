import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { expect, test } from "vitest";
import { projectFolder } from "../protoport/testing/src/process/child-program.ts";
import { projectFiles } from "./support/project-files.ts";

// The packages serve any service, so their sources, tests and documentation do not mention the plant store.

const names = readdirSync(join(projectFolder, "protoport")).join("|");

/** The packages' scope, and names derived from it: `protoport-proxy-0.1.0.tgz`, `protoport.auth.v1`. */
const allowed = new RegExp(`@protoport\\b|\\bplantstore[-./](?:${names})\\b`, "g");

/** Plants, PlantService, PLANTSTORE_URL, deletePlant; not "transplant". */
const plant = /(?<![a-z])plant|Plant|PLANT/;

const files = projectFiles("protoport");

function linesWith(file: string, pattern: RegExp): string[] {
  const lines = readFileSync(join(projectFolder, file), "utf8").split("\n");
  return lines.flatMap((line, at) =>
    pattern.test(line.replaceAll(allowed, "")) ? [`${file}:${String(at + 1)}: ${line.trim().slice(0, 100)}`] : [],
  );
}

test("no file in protoport/ mentions plants", () => {
  expect(files.length).toBeGreaterThan(500);
  expect(files.filter((file) => plant.test(file.replaceAll(allowed, "")))).toEqual([]);
  expect(files.flatMap((file) => linesWith(file, plant))).toEqual([]);
});

test.each(["the plants", "PlantService", "deletePlant", "ERR_PLANT", "plantstore.v1", "./plantstore-0.1.0.tgz"])(
  'the text "%s" counts as a mention of plants',
  (text) => expect(plant.test(text.replaceAll(allowed, ""))).toBe(true),
);

test("packages import only packages and examples by path", () => {
  const outside = files
    .filter((file) => /\.[cm]?[jt]s$/.test(file))
    .flatMap((file) => {
      const text = readFileSync(join(projectFolder, file), "utf8");
      const paths = [...text.matchAll(/\b(?:from|import)\s*\(?\s*"(\.[^"]+)"/g)].map(([, path = ""]) => path);
      const imported = paths.map((path) => normalize(join(dirname(file), path)));
      return imported.filter((path) => !/^(?:packages|examples)\//.test(path)).map((path) => `${file} -> ${path}`);
    });
  expect(outside).toEqual([]);
});
