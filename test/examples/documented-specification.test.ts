import { existsSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { describe, expect, test } from "vitest";
import { PlantService } from "../../src/gen/es/plantstore/v1/plant_service_pb.ts";
import { readPage } from "../support/docs/page-blocks.ts";
import { projectFolder } from "../../packages/testing/src/process/child-program.ts";

// docs/reference/specification.md: each file that a table names exists, each function is defined in its file, each test in its.

/** A file that a cell names, with the functions or the titles of tests that follow it. */
interface Reference {
  readonly file: string;
  readonly names: readonly string[];
}

/** A row of one of the page's tables. */
interface Row {
  readonly heading: string;
  /** What the specification requires, or does not say. */
  readonly subject: string;
  readonly code: readonly Reference[];
  readonly tests: readonly Reference[];
}

const page = readPage("docs/reference/specification.md");
const [, required = "", silent = ""] = page.split(/^## /m);

function rowsOf(chapter: string): readonly Row[] {
  return chapter.split(/^### /m).flatMap((section) => {
    const [heading = "", ...lines] = section.split("\n");
    return lines
      .filter((line) => line.startsWith("| "))
      .slice(1)
      .map((line): Row => {
        const cells = line.slice(2, -2).split(" | ");
        const [code = "", tests = ""] = cells.slice(-2);
        return {
          heading,
          subject: cells[0] ?? "",
          code: referencesIn(code, /`([^`]+)`/g),
          tests: referencesIn(tests, /"([^"]+)"/g),
        };
      });
  });
}

function referencesIn(cell: string, name: RegExp): readonly Reference[] {
  return cell.split("<br>").flatMap((part) => {
    const [, target = "", names = ""] = /^\[[^\]]+\]\(([^)]+)\)(.*)$/.exec(part) ?? [];
    const file = relative(projectFolder, join(projectFolder, "docs/reference", target));
    return target === "" ? [] : [{ file, names: [...names.matchAll(name)].map(([, each = ""]) => each) }];
  });
}

const requiredRows = rowsOf(required);
const silentRows = rowsOf(silent);
const rows = [...requiredRows, ...silentRows];

function read(file: string): string {
  return readFileSync(join(projectFolder, file), "utf8");
}

/** Whether a file defines something of this name, in any language of the project. */
function defines(file: string, name: string): boolean {
  const kinds = "function|const|class|interface|type|rpc|service|message|func|fn";
  return new RegExp(`\\b(?:${kinds}) ${name}\\b`).test(read(file));
}

/** A test file and what it imports from `test/`, where a part of its tables is. */
function sourcesOf(file: string): readonly string[] {
  const files = new Set([file]);
  for (const each of files) {
    for (const [, specifier = ""] of read(each).matchAll(/ from "(\.[^"]+\.ts)"/g)) {
      const imported = join(dirname(each), specifier);
      if (imported.startsWith("test/")) files.add(imported);
    }
  }
  return [...files].map(read);
}

/** Letters that a title needs besides placeholders, which would otherwise match nearly anything. */
const fixedLettersMin = 6;

/**
 * Returns patterns of the titles that a file of tests may have: its strings, in which a placeholder of vitest stands for
 * any text. Placeholders at the end may be left out.
 */
function titlesIn(source: string): readonly RegExp[] {
  const strings = source.matchAll(/"((?:[^"\\\n]|\\.)+)"|`((?:[^`\\]|\\.)+)`/g);
  return Array.from(strings, ([, quoted, template]) => quoted ?? template ?? "").flatMap((text) => {
    const withoutEnd = text.replace(/(?:[,:] [^,:]*\$[\w.]+)+$/, "");
    return [...new Set([text, withoutEnd])].flatMap(toPattern);
  });
}

function toPattern(title: string): readonly RegExp[] {
  const parts = title.split(/\$\{[^}]*\}|\$[\w.]+|%[sdj]/);
  if (parts.length > 1 && parts.join("").replaceAll(/[^a-z]/gi, "").length < fixedLettersMin) return [];
  return [new RegExp(`^${parts.map(escaped).join(".+")}$`)];
}

function escaped(text: string): string {
  return text.replaceAll(/[\\^$.*+?()[\]{}|]/g, String.raw`\$&`);
}

/** The patterns of each source that was read. */
const patterns = new Map<string, readonly RegExp[]>();

function patternsOf(source: string): readonly RegExp[] {
  let known = patterns.get(source);
  if (known === undefined) patterns.set(source, (known = titlesIn(source)));
  return known;
}

function hasTest(file: string, title: string): boolean {
  return sourcesOf(file).some((source) => patternsOf(source).some((pattern) => pattern.test(title)));
}

test("both tables are read", () => {
  expect(requiredRows.length).toBeGreaterThan(25);
  expect(silentRows.length).toBeGreaterThan(25);
});

test.each(PlantService.methods)("the page says what the code and tests of $name are", ({ name }) => {
  expect(rows.flatMap(({ code }) => code.flatMap(({ names }) => names))).toContain(name);
});

describe.each(rows)("$heading: $subject", ({ code, tests }) => {
  test("names files that exist, a function and a test", () => {
    expect([...code, ...tests].filter(({ file }) => !existsSync(join(projectFolder, file)))).toEqual([]);
    expect(code.flatMap(({ names }) => names)).not.toEqual([]);
    expect(tests.map(({ names }) => names.length)).not.toContain(0);
    expect(tests).not.toEqual([]);
  });

  test("names functions that their files define", () => {
    const missing = code.flatMap(({ file, names }) => names.filter((name) => !defines(file, name)));
    expect(missing).toEqual([]);
  });

  test("names tests that their files have", () => {
    const missing = tests.flatMap(({ file, names }) => names.filter((title) => !hasTest(file, title)));
    expect(missing).toEqual([]);
  });
});
