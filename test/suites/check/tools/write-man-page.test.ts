import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { settings } from "../../../../src/server/index.ts";
import { manPage } from "../../../../tools/write-man-page.ts";
import { projectFolder } from "@protoport/testing/process";

const page = manPage();

test("man/plantstore.1 is up to date", () =>
  expect(readFileSync(join(projectFolder, "man/plantstore.1"), "utf8")).toBe(page));

test("the man page contains all settings, and only man(7) requests", () => {
  const missing = Object.values(settings).filter(({ variable }) => !page.includes(variable));
  const requests = page.split("\n").flatMap((line) => /^[.']\S*/.exec(line) ?? []);
  const want = { missing: [], requests: [".B", ".P", ".SH", ".SS", ".TH", ".TP", ".br"] };
  expect({ missing, requests: [...new Set(requests)].toSorted() }).toEqual(want);
  expect(page).toMatch(/^[\n -~]+$/);
});
