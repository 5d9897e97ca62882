import { describe, expect, test } from "vitest";
import { PlantService } from "../../src/gen/es/plantstore/v1/plant_service_pb.ts";
import { readPage } from "../../protoport/test/support/docs/page-blocks.ts";
import {
  cellsOf,
  missingDefinitions,
  missingFiles,
  missingTests,
  type Reference,
  referencesIn,
} from "../../protoport/test/support/docs/references.ts";

// Each file that a table in docs/reference/specification.md names exists, and has the functions and tests named with
// it.

interface Row {
  readonly heading: string;
  /** What the specification requires, or leaves open. */
  readonly subject: string;
  readonly code: readonly Reference[];
  readonly tests: readonly Reference[];
}

const name = "docs/reference/specification.md";
const [, required = "", silent = ""] = readPage(name).split(/^## /m);

function rowsOf(chapter: string): readonly Row[] {
  return chapter.split(/^### /m).flatMap((section) => {
    const [heading = "", ...lines] = section.split("\n");
    return lines
      .filter((line) => line.startsWith("| "))
      .slice(1)
      .map((line): Row => {
        const cells = cellsOf(line);
        const [code = "", tests = ""] = cells.slice(-2);
        return {
          heading,
          subject: cells[0] ?? "",
          code: referencesIn(name, code, /`([^`]+)`/g),
          tests: referencesIn(name, tests, /"([^"]+)"/g),
        };
      });
  });
}

const requiredRows = rowsOf(required);
const silentRows = rowsOf(silent);
const rows = [...requiredRows, ...silentRows];

test("docs/reference/specification.md has both tables", () => {
  expect(requiredRows.length).toBeGreaterThan(25);
  expect(silentRows.length).toBeGreaterThan(25);
});

test.each(PlantService.methods)("the code and tests for $name are on the page", ({ name: rpc }) => {
  expect(rows.flatMap(({ code }) => code.flatMap(({ names }) => names))).toContain(rpc);
});

describe.each(rows)("$subject ($heading)", ({ code, tests }) => {
  test("references existing files, a function and a test", () => {
    expect(missingFiles([...code, ...tests])).toEqual([]);
    expect(code.flatMap(({ names }) => names)).not.toEqual([]);
    expect(tests.map(({ names }) => names.length)).not.toContain(0);
    expect(tests).not.toEqual([]);
  });

  test("names only functions that the files define", () => {
    expect(missingDefinitions(code)).toEqual([]);
  });

  test("names only tests that the files have", () => {
    expect(missingTests(tests)).toEqual([]);
  });
});
