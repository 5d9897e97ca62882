import { checkPaths } from "../../../../protoport/test/support/docs/check-paths.ts";
import { pages } from "../../../support/docs/page-blocks.ts";

checkPaths([...pages, "CONTRIBUTING.md", "RELEASING.md", "bench/README.md", "deploy/README.md"]);
