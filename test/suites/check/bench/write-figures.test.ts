import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { readFigures } from "../../../../bench/figures.ts";
import { pages, renderPage, unmeasured } from "../../../../bench/write-figures.ts";
import { projectFolder } from "@protoport/testing/process";

const figures = readFigures();

describe.each(pages)("%s", (page) => {
  const text = readFileSync(join(projectFolder, page), "utf8");

  test("has up-to-date tables from docs/figures.json", () => expect(renderPage(text, figures)).toBe(text));
  test("has figures in every table", () => expect(text).not.toContain(`\n\n${unmeasured}\n\n`));
});
