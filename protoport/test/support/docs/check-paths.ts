import { globSync } from "node:fs";
import { dirname } from "node:path";
import { expect, test } from "vitest";
import { projectFolder } from "../../../testing/src/process/child-program.ts";
import { readPage } from "./page-blocks.ts";

/** A path in this repository. Begins with a top-level folder, or ends like a source. */
const pathSpan =
  /`((?:src|packages|protoport|test|docs|bench|tools|examples|deploy|proto|\.ci|\.github)\/[\w./{}*,-]*|(?:[\w-]+\/)+[\w-]+\.(?:ts|mjs|proto|md))`/g;

/** Files in a reader's project, googleapis files, and MCP methods. */
const otherPath =
  /^(?:gen\/(?:greet|books)_pb\.ts|proto\/(?:greet|books)\.proto|google\/.*|proto\/shop\/.*|tools\/(?:list|call))$/;

/** Folders in which a path may begin: the page's, and those with sources. */
const startsOf = (page: string): string[] => [
  "",
  `${dirname(page)}/`,
  "src/",
  "protoport/*/src/",
  "protoport/",
  "examples/",
];

/** Declares the tests that paths in code font exist. */
export function checkPaths(pages: readonly string[]): void {
  test.each(pages)("every path in code font in %s exists", (page) => {
    const paths = [...readPage(page).matchAll(pathSpan)]
      .map(([, path = ""]) => path)
      .filter((path) => !otherPath.test(path));
    const missing = paths.filter(
      (path) => !startsOf(page).some((start) => globSync(start + path, { cwd: projectFolder }).length > 0),
    );
    expect(missing).toEqual([]);
  });
}
