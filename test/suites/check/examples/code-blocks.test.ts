import { checkBlocks } from "../../../../protoport/test/support/docs/check-blocks.ts";
import { blockRules, pageBlocks, pages } from "../../../support/docs/page-blocks.ts";

checkBlocks({ pages, pageBlocks, blockRules, index: "docs/README.md" });
