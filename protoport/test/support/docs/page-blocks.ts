import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { projectFolder } from "../../../testing/src/process/child-program.ts";

/** A fenced block in one page. */
export interface PageBlock {
  readonly page: string;
  /** The line of its opening fence, from 1. */
  readonly line: number;
  /** The last second-level heading before the block, or empty if there is none. */
  readonly section: string;
  /** The text after the opening fence, "ts", "sh", or an empty string. */
  readonly language: string;
  /** The text between the fences, without the last line break. */
  readonly text: string;
}

/** How some blocks are tested. */
interface BlockRule {
  /** The page that contains the blocks, by default any. */
  readonly page?: string;
  /** The page's section, by default any. */
  readonly section?: string;
  /** The blocks' language, by default any. */
  readonly language?: string;
  /** The start of the block's text, if a page has several blocks in the language. */
  readonly start?: string;
  /** The test that reads the block from the page and runs it, or the reason why no test runs the block. */
  readonly run: { readonly by: string } | { readonly not: string };
}

/** The packages' READMEs, whose programs share a definition. */
const packagePages = [
  "gateway",
  "http-engine",
  "docs-page",
  "rest-client",
  "auth",
  "telemetry",
  "frameworks",
  "grpc-handlers",
  "proxy",
].map((name) => `protoport/${name}/README.md`);

/** Covers all blocks. The first row that matches a block applies. */
export const blockRules: readonly BlockRule[] = [
  {
    page: "README.md",
    language: "sh",
    start: "npm ci",
    run: {
      not: "the first two checks of .ci/run, in a fresh clone; test/suites/clients/demo.test.ts runs npm start",
    },
  },
  {
    page: "protoport/docs/how-to/hide-internal.md",
    language: "sh",
    run: { not: "visibility.test.ts and openapi-command.test.ts of the proxy have the same flags" },
  },
  {
    page: "protoport/docs/how-to/openapi.md",
    language: "sh",
    start: "npx buf build -o definition.binpb",
    run: { not: "openapi-command.test.ts of the proxy runs the command" },
  },
  {
    page: "protoport/docs/how-to/openapi.md",
    language: "ts",
    start: "import { createBearerAuth } from",
    run: { not: "security.test.ts of the gateway has the same options" },
  },
  {
    page: "protoport/docs/how-to/review-changes.md",
    run: { by: "protoport/test/suites/long/examples/documented-review.test.ts" },
  },
  {
    page: "protoport/docs/how-to/publish-openapi.md",
    run: { by: "protoport/test/suites/openapi/documented-publishing.test.ts" },
  },
  {
    page: "protoport/docs/how-to/openapi.md",
    language: "ts",
    start: "import swagger from",
    run: { by: "protoport/test/suites/frameworks/documented-swagger.test.ts" },
  },
  {
    page: "protoport/docs/how-to/gateway.md",
    language: "ts",
    start: "import { expressConnectMiddleware }",
    run: { by: "protoport/test/suites/frameworks/documented-mounting.test.ts" },
  },
  {
    page: "protoport/docs/how-to/gateway.md",
    language: "ts",
    start: "import { ConnectGateway,",
    run: { by: "protoport/test/suites/frameworks/documented-mounting.test.ts" },
  },
  {
    page: "protoport/docs/how-to/gateway.md",
    language: "ts",
    start: "import { fastifyConnectPlugin }",
    run: { by: "protoport/test/suites/frameworks/documented-mounting.test.ts" },
  },
  {
    page: "protoport/docs/how-to/grpc-handlers.md",
    section: "NestJS",
    run: { by: "protoport/test/suites/frameworks/documented-nest.test.ts" },
  },
  {
    page: "protoport/docs/explanation/architecture.md",
    language: "text",
    run: { not: "a diagram; test/architecture.test.ts compares the imports with package.json" },
  },
  {
    page: "docs/explanation/storage.md",
    language: "text",
    run: { not: "a diagram of states, which the tests of the stores cover" },
  },
  {
    page: "protoport/gateway/src/engine/http1/README.md",
    language: "text",
    run: { by: "protoport/test/examples/documented-frames.test.ts" },
  },
  {
    page: "protoport/gateway/src/engine/http2/README.md",
    language: "text",
    run: { by: "protoport/test/examples/documented-frames.test.ts" },
  },

  {
    page: "docs/how-to/operations.md",
    language: "promql",
    run: { by: "test/suites/prometheus/prometheus.test.ts" },
  },
  {
    page: "docs/how-to/run-in-production.md",
    run: { by: "test/suites/prometheus/run-in-production.test.ts" },
  },
  {
    page: "docs/how-to/runbooks/tasks.md",
    section: "Recover PostgreSQL",
    run: { by: "test/suites/prometheus/recovery.test.ts" },
  },
  {
    page: "docs/how-to/runbooks/tasks.md",
    section: "Fail over",
    run: { by: "test/suites/prometheus/failover.test.ts" },
  },
  ...["plantstore", "proxy", "tasks"].map((name) => ({
    page: `docs/how-to/runbooks/${name}.md`,
    run: { by: "test/suites/prometheus/runbooks.test.ts" },
  })),
  { page: "docs/how-to/citus.md", run: { by: "test/suites/citus/earlier-build.test.ts" } },
  { page: "docs/how-to/upgrade.md", run: { by: "test/suites/upgrade/rolling-upgrade.test.ts" } },
  { page: "protoport/examples/a2a/README.md", run: { by: "protoport/test/suites/a2a/documented-agent.test.ts" } },
  { page: "protoport/docs/tutorials/first-service.md", run: { by: "protoport/test/suites/package/tutorial.test.ts" } },

  {
    page: "protoport/docs/how-to/proxy.md",
    language: "go",
    run: { not: "grpc-go only; the test of the other blocks uses another server of the same services" },
  },
  {
    page: "protoport/docs/reference/proxy-configuration.md",
    run: { by: "protoport/proxy/test/settings/read-proxy-configuration.test.ts" },
  },
  {
    page: "protoport/docs/how-to/proxy.md",
    language: "sh",
    run: { by: "protoport/proxy/test/suites/long/command/several-upstreams.test.ts" },
  },
  { page: "protoport/docs/how-to/proxy.md", run: { by: "protoport/test/examples/documented-proxy.test.ts" } },
  ...packagePages.map((page) => ({ page, run: { by: "protoport/test/suites/package/readmes.test.ts" } })),
  {
    page: "protoport/docs/how-to/mcp.md",
    language: "yaml",
    run: { by: "protoport/gateway/test/suites/mcp/sign-in.test.ts" },
  },
  {
    page: "protoport/docs/how-to/gateway.md",
    language: "yaml",
    run: { by: "protoport/test/suites/package/annotations.test.ts" },
  },
  {
    page: "protoport/docs/how-to/gateway.md",
    language: "sh",
    run: { by: "protoport/test/suites/package/annotations.test.ts" },
  },
  { page: "README.md", language: "console", run: { by: "test/suites/clients/demo.test.ts" } },
  {
    page: "protoport/docs/how-to/migration.md",
    language: "sh",
    run: { by: "protoport/test/suites/package/check.test.ts" },
  },
  { page: "protoport/docs/how-to/packages.md", language: "sh", run: { by: "test/suites/package/install.test.ts" } },
  { page: "docs/tutorials/demo.md", language: "console", run: { by: "test/suites/clients/demo.test.ts" } },
  { page: "docs/how-to/clients.md", language: "sh", run: { by: "test/suites/clients/documented-shell.test.ts" } },
  { page: "docs/how-to/clients.md", language: "go", run: { by: "test/suites/clients/go/go.test.ts" } },
  { page: "docs/how-to/clients.md", language: "python", run: { by: "test/suites/clients/python/python.test.ts" } },
  { page: "docs/how-to/clients.md", language: "java", run: { by: "test/suites/clients/java/java.test.ts" } },
  { page: "docs/how-to/clients.md", language: "rust", run: { by: "test/suites/clients/rust/rust.test.ts" } },
  {
    page: "docs/how-to/authentication.md",
    language: "console",
    start: "$ curl",
    run: { by: "test/suites/clients/documented-refusal.test.ts" },
  },
  {
    page: "docs/how-to/authentication.md",
    language: "proto",
    run: { by: "protoport/test/examples/documented-scopes.test.ts" },
  },
  { page: "docs/how-to/authentication.md", language: "json", run: { by: "test/examples/documented-log.test.ts" } },
  { page: "docs/how-to/authentication.md", language: "env", run: { by: "test/examples/documented-settings.test.ts" } },
  {
    page: "protoport/docs/how-to/openapi.md",
    language: "yaml",
    run: { by: "protoport/test/examples/documented-definition.test.ts" },
  },
  {
    page: "protoport/docs/how-to/hide-internal.md",
    language: "proto",
    run: { by: "protoport/test/examples/documented-definition.test.ts" },
  },
  {
    page: "protoport/docs/how-to/validation.md",
    language: "proto",
    run: { by: "protoport/test/examples/documented-validation.test.ts" },
  },
  {
    page: "protoport/docs/how-to/validation.md",
    language: "json",
    run: { by: "protoport/test/examples/documented-validation.test.ts" },
  },
  {
    page: "protoport/docs/reference/rest.md",
    language: "http",
    run: { by: "protoport/test/examples/documented-gateway.test.ts" },
  },
  {
    page: "protoport/docs/reference/rest.md",
    language: "text",
    run: { by: "protoport/test/examples/documented-gateway.test.ts" },
  },
  {
    page: "protoport/docs/reference/rest.md",
    language: "proto",
    run: { by: "protoport/test/examples/documented-gateway.test.ts" },
  },
  {
    page: "protoport/docs/reference/streams.md",
    language: "js",
    run: { by: "protoport/test/suites/browser/rest-streams.test.ts" },
  },
  {
    page: "protoport/docs/explanation/performance.md",
    language: "",
    run: { by: "test/examples/documented-bench.test.ts" },
  },
  { language: "ts", run: { by: "test/suites/clients/documented-programs.test.ts" } },
  { language: "sh", run: { by: "test/suites/clients/documented-commands.test.ts" } },
  { language: "console", run: { by: "test/suites/clients/documented-commands.test.ts" } },
];

/** The READMEs and the pages in docs/, relative to the project's folder. */
export const pages: readonly string[] = [
  "README.md",
  ...packagePages,
  "protoport/examples/a2a/README.md",
  "protoport/gateway/src/engine/http1/README.md",
  "protoport/gateway/src/engine/http2/README.md",
  ...readdirSync(join(projectFolder, "docs"), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".md"))
    .toSorted()
    .map((name) => `docs/${name}`),
];

/** Returns a page's text. */
export function readPage(page: string): string {
  return readFileSync(join(projectFolder, page), "utf8");
}

/** All fenced blocks on all pages. */
export const pageBlocks: readonly PageBlock[] = pages.flatMap(blocksOf);

function blocksOf(page: string): PageBlock[] {
  const text = readPage(page);
  return [...text.matchAll(/^```(.*)\n([^]*?)\n```$/gm)].map(({ index, 1: language = "", 2: block = "" }) => ({
    page,
    line: text.slice(0, index).split("\n").length,
    section: [...text.slice(0, index).matchAll(/^## (.*)$/gm)].at(-1)?.[1] ?? "",
    language,
    text: block,
  }));
}

/** Returns a block's rule, or `undefined` when the table has none. */
export function ruleOf(block: PageBlock): BlockRule | undefined {
  return blockRules.find((rule) => fits(rule, block));
}

/** Returns whether a rule matches a block. */
export function fits({ page, section, language, start = "" }: BlockRule, block: PageBlock): boolean {
  return (
    (page ?? block.page) === block.page &&
    (section ?? block.section) === block.section &&
    (language ?? block.language) === block.language &&
    block.text.startsWith(start)
  );
}

/** Returns the blocks that a test runs, by its path relative to the project's folder. Throws when there are none. */
export function blocksRunBy(test: string): readonly PageBlock[] {
  const blocks = pageBlocks.filter((block) => {
    const run = ruleOf(block)?.run;
    return run !== undefined && "by" in run && run.by === test;
  });
  if (blocks.length === 0) throw new Error(`no page has a block for ${test}`);
  return blocks;
}
