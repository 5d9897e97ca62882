import { existsSync, readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { expect, test } from "vitest";
import { projectFolder } from "../../../testing/src/process/child-program.ts";

const read = (page: string): string =>
  readFileSync(join(projectFolder, page), "utf8").replaceAll(/^ *```[^]*?^ *```$/gm, "");

function anchorsOf(page: string): Set<string> {
  const headings = read(page).matchAll(/^#+ (.*)$/gm);
  return new Set(Array.from(headings, ([, heading = ""]) => anchorOf(heading)));
}

function anchorOf(heading: string): string {
  const text = heading.replaceAll(/\[([^\]]+)\]\([^)]*\)/g, "$1").toLowerCase();
  return text.replaceAll(/[^\w\- ]/g, "").replaceAll(" ", "-");
}

function linksOf(page: string): string[] {
  const targets = read(page)
    .replaceAll("\n", " ")
    .matchAll(/\]\(([^)\s]+)\)/g);
  return Array.from(targets, ([, target = ""]) => target).filter((target) => !/^[a-z]+:/.test(target));
}

/** Declares the tests that links lead to a file in a folder, and to a heading if they name one. */
export function checkLinks(pages: readonly string[], folder: string): void {
  const isBroken = (page: string, link: string): boolean => {
    const [path = "", anchor] = link.split("#");
    const target = path === "" ? page : normalize(join(dirname(page), path));
    if (!target.startsWith(folder) || !existsSync(join(projectFolder, target))) return true;
    return anchor !== undefined && target.endsWith(".md") && !anchorsOf(target).has(anchor);
  };

  test("the pages contain more than 100 links", () => expect(pages.flatMap(linksOf).length).toBeGreaterThan(100));

  test.each(pages)("the links in %s lead to existing files and headings", (page) => {
    expect(linksOf(page).filter((link) => isBroken(page, link))).toEqual([]);
  });
}
