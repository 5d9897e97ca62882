import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { projectFiles, projectFolder } from "@protoport/testing/process";
import { checkBlocks } from "../../../support/docs/check-blocks.ts";
import { checkLinks } from "../../../support/docs/check-links.ts";
import { checkPaths } from "../../../support/docs/check-paths.ts";
import { checkPromises } from "../../../support/docs/check-promises.ts";
import { checkProse } from "../../../support/docs/check-prose.ts";
import { blockRules, pageBlocks, pages } from "../../../support/docs/page-blocks.ts";

checkBlocks({ pages, pageBlocks, blockRules, index: "protoport/docs/README.md" });
checkPaths(pages);
checkPromises("protoport/SECURITY.md", "the gateway promises");
checkProse([...pages, "protoport/SECURITY.md"], "protoport/README.md");

const markdown = projectFiles("protoport").filter((file) => file.endsWith(".md"));
// No link leaves protoport/, so that the folder can be a repository.
checkLinks(markdown, "protoport/");

test.each(globSync("protoport/*/README.md", { cwd: projectFolder }))("%s has at most 600 words", (page) => {
  expect(readFileSync(join(projectFolder, page), "utf8").split(/\s+/).length).toBeLessThanOrEqual(600);
});
