import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { projectFolder } from "../../../testing/src/process/child-program.ts";
import { type BlockRule, blocksOf, fits, type PageBlock, readPage } from "./page-blocks.ts";

/** Pages, and how their blocks are tested. */
export interface CheckedPages {
  readonly pages: readonly string[];
  readonly pageBlocks: readonly PageBlock[];
  readonly blockRules: readonly BlockRule[];
  /** The page that links all pages in its folder, such as `docs/README.md`. */
  readonly index: string;
}

/** Declares the tests that each page's code blocks have rules, and that an index links the pages in its folder. */
export function checkBlocks({ pages, pageBlocks, blockRules, index }: CheckedPages): void {
  test.each(pages)("every code block in %s has an opening and a closing fence", (page) => {
    const fences = readPage(page).match(/^\s*(?:```|~~~)/gm) ?? [];
    expect(fences.length).toBe(2 * blocksOf(page).length);
  });

  test.each(pageBlocks)("the code block at line $line in $page has a test rule", (block) => {
    expect(blockRules.some((rule) => fits(rule, block))).toBe(true);
  });

  test.each(blockRules)("rule %# applies to a code block and names an existing test", ({ run, ...rule }) => {
    expect(pageBlocks.some((block) => fits({ run, ...rule }, block))).toBe(true);
    if ("by" in run) expect(existsSync(join(projectFolder, run.by))).toBe(true);
  });

  const links = [...readPage(index).matchAll(/\]\(([^)#]+)/g)].map(([, link = ""]) => join(dirname(index), link));
  const inFolder = pages.filter((page) => page.startsWith(`${dirname(index)}/`) && page !== index);
  test.each(inFolder)("the page %s is linked from the index in its folder", (page) => expect(links).toContain(page));
}
