import { describe, expect, test } from "vitest";
import { PlantService } from "../../../../src/gen/es/plantstore/v1/plant_service_pb.ts";
import { readPage } from "../../../../protoport/test/support/docs/page-blocks.ts";
import {
  cellsOf,
  missingFiles,
  missingTests,
  type Reference,
  referencesIn,
} from "../../../../protoport/test/support/docs/references.ts";

// The tests of each requirement in docs/reference/specification.md exist.

type Row = { readonly requirement: string; readonly tests: readonly Reference[] };

const name = "docs/reference/specification.md";
const page = readPage(name);

const rows = (page.split(/^## /m)[1] ?? "")
  .split("\n")
  .filter((line) => /^\| (?!requirement)/.test(line))
  .map((line): Row => {
    const [requirement = "", tests = ""] = cellsOf(line);
    return { requirement, tests: referencesIn(name, tests) };
  });

test("docs/reference/specification.md lists the requirements", () => {
  expect(rows.length).toBeGreaterThan(15);
});

test.each(PlantService.methods)("docs/reference/specification.md names $name", ({ name: rpc }) => {
  expect(page).toContain(`\`${rpc}\``);
});

describe.each(rows)("the requirement $requirement", ({ tests }) => {
  test("references existing files with a test each", () => {
    expect(tests).not.toEqual([]);
    expect(tests.map(({ titles }) => titles.length)).not.toContain(0);
    expect(missingFiles(tests)).toEqual([]);
  });

  test("names only tests that the files have", () => {
    expect(missingTests(tests)).toEqual([]);
  });
});
