import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { projectFolder } from "../../protoport/testing/src/process/child-program.ts";
import {
  blockRules,
  fits,
  pageBlocks,
  pages,
  readPage,
  ruleOf,
} from "../../protoport/test/support/docs/page-blocks.ts";

test.each(pages)("every code block in %s has an opening and a closing fence", (page) => {
  const fences = readPage(page).match(/^\s*(?:```|~~~)/gm) ?? [];
  expect(fences.length).toBe(2 * pageBlocks.filter((block) => block.page === page).length);
});

test.each(pageBlocks)("the code block at line $line in $page has a test rule", (block) => {
  expect(ruleOf(block)).toBeDefined();
});

test.each(blockRules)("rule %# applies to a code block and names an existing test", ({ run, ...rule }) => {
  expect(pageBlocks.some((block) => fits({ run, ...rule }, block))).toBe(true);
  if ("by" in run) expect(existsSync(join(projectFolder, run.by))).toBe(true);
});

const index = "docs/README.md";
const links = [...readPage(index).matchAll(/\]\(([^)#]+)/g)].map(([, link = ""]) => join(dirname(index), link));

test.each(pages.filter((page) => page.startsWith("docs/") && page !== index))(
  "the page %s is linked from the index in docs/",
  (page) => {
    expect(links).toContain(page);
  },
);
