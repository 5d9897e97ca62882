import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { readFigures } from "../../../../bench/figures.ts";
import { pages, renderPage, unmeasured } from "../../../../bench/write-figures.ts";
import { projectFolder } from "../../../../protoport/testing/src/process/child-program.ts";

const figures = readFigures();

describe.each(pages)("%s", (page) => {
  const text = readFileSync(join(projectFolder, page), "utf8");

  test("has up-to-date tables from docs/figures.json", () => {
    expect(renderPage(text, figures)).toBe(text);
  });

  test("has figures in every table", () => {
    expect(text).not.toContain(`\n\n${unmeasured}\n\n`);
  });
});

test("renderPage overwrites a figure that was changed by hand", () => {
  const text = readFileSync(join(projectFolder, "docs/explanation/performance.md"), "utf8");
  const changed = text.replace(/^\| \*\*plantstore\*\* \| .*$/m, "| **plantstore** | 0.1 |");
  expect(changed).not.toBe(text);
  expect(renderPage(changed, figures)).toBe(text);
});

test("renderPage marks a table without figures as not measured", () => {
  const page = "<!-- figures: memory -->\n\nof an earlier time\n\n<!-- /figures -->";
  expect(renderPage(page, {})).toContain(`\n\n${unmeasured}\n\n`);
});

test("renderPage rejects an unknown figure name", () => {
  expect(() => renderPage("<!-- figures: speed -->\n\n1\n\n<!-- /figures -->", figures)).toThrow(
    'unknown name of figures "speed"',
  );
});
