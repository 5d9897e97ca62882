import { describe, expect, test } from "vitest";
import { PlantService } from "../../src/gen/es/plantstore/v1/plant_service_pb.ts";
import { readPage } from "../../protoport/test/support/docs/page-blocks.ts";
import { cellsOf, missingFiles, missingTests, type Reference, referencesIn } from "../../protoport/test/support/docs/references.ts";

// Each file that a table in docs/reference/specification.md names exists, and has the tests named with it.

interface Row {
  /** What the specification requires, or leaves open. */
  readonly subject: string;
  readonly tests: readonly Reference[];
}

const name = "docs/reference/specification.md";
const page = readPage(name);
const [, required = "", silent = ""] = page.split(/^## /m);

function rowsOf(chapter: string): readonly Row[] {
  return chapter
    .split("\n")
    .filter((line) => /^\| (?!requirement|question)/.test(line))
    .map((line) => {
      const cells = cellsOf(line);
      return { subject: cells[0] ?? "", tests: referencesIn(name, cells.at(-1) ?? "") };
    });
}

const requiredRows = rowsOf(required);
const silentRows = rowsOf(silent);

test("docs/reference/specification.md has both tables", () => {
  expect(requiredRows.length).toBeGreaterThan(15);
  expect(silentRows.length).toBeGreaterThan(20);
});

test.each(PlantService.methods)("the requirements for $name are on the page", ({ name: rpc }) => {
  expect(page).toContain(`\`${rpc}\``);
});

describe.each([...requiredRows, ...silentRows])("$subject", ({ tests }) => {
  test("references existing files with a test each", () => {
    expect(tests).not.toEqual([]);
    expect(tests.map(({ titles }) => titles.length)).not.toContain(0);
    expect(missingFiles(tests)).toEqual([]);
  });

  test("names only tests that the files have", () => {
    expect(missingTests(tests)).toEqual([]);
  });
});
