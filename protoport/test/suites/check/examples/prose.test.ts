import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { projectFolder } from "@protoport/testing/process";
import { checkProse } from "../../../support/docs/check-prose.ts";
import { pages } from "../../../support/docs/page-blocks.ts";

checkProse([...pages, "protoport/SECURITY.md"], "protoport/README.md");

test.each(globSync("protoport/*/README.md", { cwd: projectFolder }))("%s has at most 600 words", (page) => {
  expect(readFileSync(join(projectFolder, page), "utf8").split(/\s+/).length).toBeLessThanOrEqual(600);
});
