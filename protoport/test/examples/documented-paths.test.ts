import { globSync } from "node:fs";
import { dirname } from "node:path";
import { expect, test } from "vitest";
import { projectFolder } from "../../testing/src/process/child-program.ts";
import { pages, readPage } from "../support/docs/page-blocks.ts";

/** A path in this repository. Begins with a top-level folder, or ends like a source. */
const pathSpan =
  /`((?:src|packages|test|docs|bench|tools|examples|deploy|proto|\.ci|\.github)\/[\w./{}*,-]*|(?:[\w-]+\/)+[\w-]+\.(?:ts|mjs|proto|md))`/g;

/** Files in a reader's project, googleapis files, and MCP methods. */
const otherPath = /^(?:gen\/greet_pb\.ts|proto\/greet\.proto|google\/.*|proto\/shop\/.*|tools\/(?:list|call))$/;

/** Folders in which a path may begin: the page's, and those with sources. */
function startsOf(page: string): string[] {
  return ["", `${dirname(page)}/`, "src/", "protoport/*/src/", "protoport/", "examples/"];
}

const texts = [...pages, "CONTRIBUTING.md", "RELEASING.md", "bench/README.md", "deploy/README.md"];

test.each(texts)("every path in code font in %s exists", (page) => {
  const paths = [...readPage(page).matchAll(pathSpan)]
    .map(([, path = ""]) => path)
    .filter((path) => !otherPath.test(path));
  const missing = paths.filter(
    (path) => !startsOf(page).some((start) => globSync(start + path, { cwd: projectFolder }).length > 0),
  );
  expect(missing).toEqual([]);
});
