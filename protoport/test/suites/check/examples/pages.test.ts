import { projectFiles } from "@protoport/testing/process";
import { checkBlocks } from "../../../support/docs/check-blocks.ts";
import { checkLinks } from "../../../support/docs/check-links.ts";
import { checkPaths } from "../../../support/docs/check-paths.ts";
import { checkPromises } from "../../../support/docs/check-promises.ts";
import { blockRules, pageBlocks, pages } from "../../../support/docs/page-blocks.ts";

checkBlocks({ pages, pageBlocks, blockRules, index: "protoport/docs/README.md" });
checkPaths(pages);
checkPromises("protoport/SECURITY.md", "the gateway promises | tests");

const markdown = projectFiles("protoport").filter((file) => file.endsWith(".md"));
// No link leaves protoport/, so that the folder can be a repository.
checkLinks(markdown, "protoport/");
