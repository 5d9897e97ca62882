import { describe, expect, test } from "vitest";
import { readPage } from "./page-blocks.ts";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { projectFolder } from "../../../testing/src/process/child-program.ts";

/** Declares tests that a page's table of promises, below a header, names existing tests. */
export function checkPromises(page: string, header: string): void {
  const [, table = ""] = readPage(page).split(`| ${header} |\n`);
  const lines = table.split("\n").slice(1);
  const promises = lines.slice(0, lines.indexOf("")).map((line) => {
    const [promise = "", tests = ""] = cellsOf(line);
    return { promise, tests: referencesIn(page, tests) };
  });

  test(`the table of promises in ${page} has at least five rows`, () => expect(promises.length).toBeGreaterThan(4));

  describe.each(promises)('the promise "$promise"', ({ tests }) => {
    test("names test files that exist", () => {
      expect(tests).not.toEqual([]);
      expect(tests.map(({ titles }) => titles.length)).not.toContain(0);
      expect(missingFiles(tests)).toEqual([]);
    });

    test("names tests that these files have", () => expect(missingTests(tests)).toEqual([]));
  });
}

// Table cells in the docs that refer to tests, such as [rest.test.ts](../test/rest.test.ts) "an id has one spelling".

/** A test file that a cell refers to, with the titles that follow it. */
export type Reference = { readonly file: string; readonly titles: readonly string[] };
/** A row's cells without the outer bars. */
export const cellsOf = (line: string): readonly string[] => line.slice(2, -2).split(" | ");

/** Returns the test files that a page's cell refers to, with the titles in quotes. */
export const referencesIn = (page: string, cell: string): readonly Reference[] =>
  cell.split("<br>").flatMap((part) => {
    const [, target = "", titles = ""] = /^\[[^\]]+\]\(([^)]+)\)(.*)$/.exec(part) ?? [];
    const file = relative(projectFolder, join(projectFolder, dirname(page), target));
    return target === "" ? [] : [{ file, titles: Array.from(titles.matchAll(/"([^"]+)"/g), ([, text = ""]) => text) }];
  });

export const missingFiles = (references: readonly Reference[]): readonly string[] =>
  references.map(({ file }) => file).filter((file) => !existsSync(join(projectFolder, file)));

export const missingTests = (references: readonly Reference[]): readonly string[] =>
  references.flatMap(({ file, titles }) => titles.filter((title) => !hasTest(file, title)));

const read = (file: string): string => readFileSync(join(projectFolder, file), "utf8");

/** Returns a test file and what it imports from `test/`, which may contain some test cases. */
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

/** Letters that a title needs in addition to placeholders, so that it does not match nearly any text. */
const minFixedLetters = 6;

/** Returns patterns for a test file's titles, in which a vitest placeholder matches any text. */
function titlesIn(source: string): readonly RegExp[] {
  const strings = source.matchAll(/"((?:[^"\\\n]|\\.)+)"|`((?:[^`\\]|\\.)+)`/g);
  return Array.from(strings, ([, quoted, template]) => quoted ?? template ?? "").flatMap((text) => {
    const withoutEnd = text.replace(/(?:[,:] [^,:]*\$[\w.]+)+$/, "");
    return [...new Set([text, withoutEnd])].flatMap(toPattern);
  });
}

function toPattern(title: string): readonly RegExp[] {
  const parts = title.split(/\$\{[^}]*\}|\$[\w.]+|%[sdj]/);
  if (parts.length > 1 && parts.join("").replaceAll(/[^a-z]/gi, "").length < minFixedLetters) return [];
  return [new RegExp(`^${parts.map(escaped).join(".+")}$`)];
}

const escaped = (text: string): string => text.replaceAll(/[\\^$.*+?()[\]{}|]/g, String.raw`\$&`);
/** The patterns for each source that was read. */
const patterns = new Map<string, readonly RegExp[]>();

function patternsOf(source: string): readonly RegExp[] {
  let known = patterns.get(source);
  if (known === undefined) patterns.set(source, (known = titlesIn(source)));
  return known;
}

const hasTest = (file: string, title: string): boolean =>
  sourcesOf(file).some((source) => patternsOf(source).some((pattern) => pattern.test(title)));
