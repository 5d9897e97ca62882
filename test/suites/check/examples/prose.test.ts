import { checkProse } from "../../../../protoport/test/support/docs/check-prose.ts";
import { pages } from "../../../support/docs/page-blocks.ts";

// oxfmt-ignore
const others = [
  "SECURITY.md", "CONTRIBUTING.md", "RELEASING.md", "CHANGELOG.md", "deploy/README.md", "bench/README.md",
];

checkProse([...pages, ...others], "README.md");
