import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { readFigures } from "../../bench/figures.ts";
import { pages, renderPage, unmeasured } from "../../bench/write-figures.ts";
import { projectFolder } from "../support/process/child-program.ts";

const figures = readFigures();

describe.each(pages)("%s", (page) => {
  const text = readFileSync(join(projectFolder, page), "utf8");

  test("has the tables that follow from docs/figures.json", () => {
    expect(renderPage(text, figures)).toBe(text);
  });

  test("has no table that was not measured", () => {
    expect(text).not.toContain(`\n\n${unmeasured}\n\n`);
  });
});

test("a figure that was changed by hand is put right", () => {
  const text = readFileSync(join(projectFolder, "README.md"), "utf8");
  const changed = text.replace(/^\| REST \| .*$/m, "| REST | 0.1 | 99.9 | 99.9 | – | – |");
  expect(changed).not.toBe(text);
  expect(renderPage(changed, figures)).toBe(text);
});

test("a table whose figures were not recorded is shown as such", () => {
  const page = "<!-- figures: workers -->\n\nof an earlier time\n\n<!-- /figures -->";
  expect(renderPage(page, {})).toContain(`\n\n${unmeasured}\n\n`);
});

test("a page may not ask for figures that nobody knows", () => {
  expect(() => renderPage("<!-- figures: speed -->\n\n1\n\n<!-- /figures -->", figures)).toThrow("called speed");
});
