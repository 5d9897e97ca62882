import { checkPaths } from "../../../support/docs/check-paths.ts";
import { pages } from "../../../support/docs/page-blocks.ts";

checkPaths(pages);
