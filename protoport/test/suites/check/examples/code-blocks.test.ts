import { checkBlocks } from "../../../support/docs/check-blocks.ts";
import { blockRules, pageBlocks, pages } from "../../../support/docs/page-blocks.ts";

checkBlocks({ pages, pageBlocks, blockRules, index: "protoport/docs/README.md" });
