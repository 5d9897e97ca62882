import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { projectFolder } from "@protoport/testing/process";
import { methodPieces, pieces } from "../../recipe/get-plant.ts";

// The suite `recipe` adds code at these places each night. A rewritten comment can remove one.

const read = (path: string): string => readFileSync(join(projectFolder, path), "utf8");

test.each(Object.keys(pieces))("%s has a place where the recipe adds an RPC", (path) => {
  expect(read(path)).toMatch(/\n(?= +(?:async )?deletePlant\b)/);
});

const places = Object.entries(methodPieces).flatMap(([path, ofFile]) =>
  ofFile.map(([, place]) => ({ path, place, line: place.trim().split("\n", 1)[0] })),
);

test.each(places)('$path contains exactly one line "$line", which the recipe needs', ({ path, place }) => {
  expect(read(path).split(place)).toHaveLength(2);
});
