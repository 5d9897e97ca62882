// oxfmt-ignore
import { type BlockRule, blocksOf, blocksRunBy as blocksOfTest, type PageBlock, pagesIn
} from "../../../protoport/test/support/docs/page-blocks.ts";

/** How the blocks on the plant store's pages are tested. The first row that matches a block applies. */
// oxfmt-ignore
export const blockRules: readonly BlockRule[] = [
  { page: "README.md", language: "sh", start: "npm ci",
    run: { not: "the first two checks of .ci/run, in a fresh clone; test/suites/clients/demo.test.ts runs npm start" } },
  { page: "docs/how-to/operations.md", language: "promql", run: { by: "test/suites/prometheus/prometheus.test.ts" } },
  { page: "docs/how-to/logs.md",
    run: { not: "the settings of journald, logrotate and a collector, which no test runs" } },
  { page: "docs/how-to/run-in-production.md", run: { by: "test/suites/prometheus/run-in-production.test.ts" } },
  { page: "docs/how-to/runbooks/tasks.md", section: "Recover PostgreSQL",
    run: { by: "test/suites/prometheus/recovery.test.ts" } },
  { page: "docs/how-to/runbooks/tasks.md", section: "Fail over",
    run: { by: "test/suites/prometheus/failover.test.ts" } },
  ...["docs/how-to/runbooks/plantstore", "docs/how-to/runbooks/tasks", "protoport/docs/how-to/runbooks/proxy"].map(
    (name) => ({ page: `${name}.md`, run: { by: "test/suites/prometheus/runbooks.test.ts" } }),
  ),
  ...["docs/how-to/install.md", "protoport/docs/how-to/packages.md"].map((page) => ({
    page,
    run: { by: "test/suites/package/install.test.ts" },
  })),
  { page: "docs/how-to/operations.md", language: "sh", run: { by: "test/suites/upgrade/rolling-upgrade.test.ts" } },
  { page: "README.md", language: "console", run: { by: "test/suites/clients/demo.test.ts" } },
  { page: "docs/tutorials/demo.md", language: "console", run: { by: "test/suites/clients/demo.test.ts" } },
  { page: "docs/how-to/clients.md", language: "sh", run: { by: "test/suites/clients/documented-shell.test.ts" } },
  { page: "docs/how-to/authentication.md", language: "console", start: "$ curl",
    run: { by: "test/suites/clients/documented-refusal.test.ts" } },
  { page: "docs/how-to/authentication.md", language: "json",
    run: { by: "test/suites/check/examples/documented-log.test.ts" } },
  { page: "docs/how-to/authentication.md", language: "env",
    run: { by: "test/suites/check/examples/documented-settings.test.ts" } },
  { language: "ts", run: { by: "test/suites/clients/documented-programs.test.ts" } },
  { language: "sh", run: { by: "test/suites/clients/documented-commands.test.ts" } },
  { language: "console", run: { by: "test/suites/clients/documented-commands.test.ts" } },
];

/** The plant store's README and pages, relative to the project's folder. */
export const pages: readonly string[] = ["README.md", ...pagesIn("docs")];

/** All fenced blocks on the plant store's pages, and on those of Protoport that its suites run. */
export const pageBlocks: readonly PageBlock[] = [
  ...pages,
  "protoport/docs/how-to/packages.md",
  "protoport/docs/how-to/runbooks/proxy.md",
].flatMap(blocksOf);

/** Returns the blocks that a test runs, by its path relative to the project's folder. Throws when there are none. */
export const blocksRunBy = (test: string): readonly PageBlock[] => blocksOfTest(test, pageBlocks, blockRules);
