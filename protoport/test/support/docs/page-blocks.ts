import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { projectFolder } from "../../../testing/src/process/child-program.ts";

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
export interface BlockRule {
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
  "protoport/README.md",
  ...["gateway", "docs-page", "rest-client", "auth", "telemetry", "frameworks", "grpc-handlers", "proxy"].map(
    (name) => `protoport/${name}/README.md`,
  ),
];

/** Covers all blocks. The first row that matches a block applies. */
// oxfmt-ignore
export const blockRules: readonly BlockRule[] = [
  { page: "protoport/docs/how-to/openapi.md", section: "Lint and publish",
    run: { by: "protoport/test/suites/openapi/documented-publishing.test.ts" } },
  { page: "protoport/docs/how-to/openapi.md", language: "sh", start: "npx buf build -o definition.binpb",
    run: { not: "openapi-command.test.ts of the proxy runs the command" } },
  { page: "protoport/docs/how-to/review-changes.md", language: "ts",
    run: { by: "protoport/test/suites/package/check.test.ts" } },
  { page: "protoport/docs/how-to/review-changes.md",
    run: { by: "protoport/test/suites/long/examples/documented-review.test.ts" } },
  { page: "protoport/docs/how-to/openapi.md", language: "ts", start: "import swagger from",
    run: { by: "protoport/test/suites/frameworks/documented-swagger.test.ts" } },
  { page: "protoport/docs/how-to/frameworks.md", language: "ts", start: "import { expressConnectMiddleware }",
    run: { by: "protoport/test/suites/frameworks/documented-mounting.test.ts" } },
  { page: "protoport/docs/how-to/frameworks.md", language: "ts", start: "import { ConnectGateway,",
    run: { by: "protoport/test/suites/frameworks/documented-mounting.test.ts" } },
  { page: "protoport/docs/how-to/frameworks.md", language: "ts", start: "import { fastifyConnectPlugin }",
    run: { by: "protoport/test/suites/frameworks/documented-mounting.test.ts" } },
  { page: "protoport/docs/how-to/grpc-handlers.md", section: "NestJS",
    run: { by: "protoport/test/suites/frameworks/documented-nest.test.ts" } },
  { page: "protoport/docs/explanation/architecture.md", language: "text",
    run: { not: "a diagram; test/suites/check/architecture.test.ts compares the imports with package.json" } },
  { page: "protoport/gateway/src/engine/http1/README.md", language: "text", run: { not: "a diagram" } },
  { page: "protoport/gateway/src/engine/http2/README.md", language: "text", run: { not: "a diagram" } },
  { page: "protoport/docs/tutorials/first-service.md", run: { by: "protoport/test/suites/package/tutorial.test.ts" } },
  { page: "protoport/docs/reference/proxy-configuration.md",
    run: { by: "protoport/proxy/test/settings/read-proxy-configuration.test.ts" } },
  { page: "protoport/docs/how-to/proxy.md", language: "sh",
    run: { by: "protoport/proxy/test/suites/long/command/several-upstreams.test.ts" } },
  { page: "protoport/docs/how-to/proxy.md", run: { by: "protoport/test/suites/check/examples/documented-proxy.test.ts" } },
  ...packagePages.map((page) => ({ page, run: { by: "protoport/test/suites/package/readmes.test.ts" } })),
  { page: "protoport/docs/how-to/mcp.md", language: "yaml",
    run: { by: "protoport/gateway/test/suites/mcp/sign-in.test.ts" } },
  { page: "protoport/docs/how-to/gateway.md", language: "yaml",
    run: { by: "protoport/test/suites/package/annotations.test.ts" } },
  { page: "protoport/docs/how-to/gateway.md", language: "sh",
    run: { by: "protoport/test/suites/package/annotations.test.ts" } },
  { page: "protoport/docs/how-to/migration.md", language: "sh",
    run: { by: "protoport/test/suites/package/check.test.ts" } },
  { page: "protoport/docs/how-to/packages.md",
    run: { not: "the suite that installs the packages with each package manager has the same commands" } },
  { page: "protoport/docs/how-to/runbooks/proxy.md",
    run: { not: "the suite of the alerts runs the commands next to a Prometheus" } },
  { page: "protoport/docs/how-to/openapi.md", language: "yaml",
    run: { by: "protoport/test/suites/check/examples/documented-definition.test.ts" } },
  { page: "protoport/docs/how-to/scopes.md", language: "proto",
    run: { by: "protoport/test/suites/check/examples/documented-scopes.test.ts" } },
  { page: "protoport/docs/how-to/openapi.md", language: "proto",
    run: { by: "protoport/test/suites/check/examples/documented-definition.test.ts" } },
  { page: "protoport/docs/how-to/validation.md", language: "proto",
    run: { by: "protoport/test/suites/check/examples/documented-validation.test.ts" } },
  { page: "protoport/docs/how-to/validation.md", language: "json",
    run: { by: "protoport/test/suites/check/examples/documented-validation.test.ts" } },
  { page: "protoport/docs/reference/rest.md", language: "http",
    run: { by: "protoport/test/suites/check/examples/documented-gateway.test.ts" } },
  { page: "protoport/docs/reference/rest.md", language: "text",
    run: { by: "protoport/test/suites/check/examples/documented-gateway.test.ts" } },
  { page: "protoport/docs/reference/rest.md", language: "proto",
    run: { by: "protoport/test/suites/check/examples/documented-gateway.test.ts" } },
  { page: "protoport/docs/reference/streams.md", language: "js",
    run: { by: "protoport/test/suites/browser/rest-calls.test.ts" } },
  { page: "protoport/docs/explanation/performance.md", language: "",
    run: { by: "protoport/test/suites/check/examples/documented-bench.test.ts" } },
  { language: "ts", run: { by: "protoport/test/suites/clients/documented-programs.test.ts" } },
];

/** Protoport's READMEs and the pages in its docs/, relative to the project's folder. */
export const pages: readonly string[] = [
  ...packagePages,
  "protoport/gateway/src/engine/http1/README.md",
  "protoport/gateway/src/engine/http2/README.md",
  ...pagesIn("protoport/docs"),
];

export function pagesIn(folder: string): string[] {
  const names = readdirSync(join(projectFolder, folder), { recursive: true, encoding: "utf8" });
  return names
    .filter((name) => name.endsWith(".md"))
    .toSorted()
    .map((name) => `${folder}/${name}`);
}

export const readPage = (page: string): string => readFileSync(join(projectFolder, page), "utf8");
export const pageBlocks: readonly PageBlock[] = pages.flatMap(blocksOf);

export function blocksOf(page: string): PageBlock[] {
  const text = readPage(page);
  return [...text.matchAll(/^```(.*)\n([^]*?)\n```$/gm)].map(({ index, 1: language = "", 2: block = "" }) => ({
    page,
    line: text.slice(0, index).split("\n").length,
    section: [...text.slice(0, index).matchAll(/^## (.*)$/gm)].at(-1)?.[1] ?? "",
    language,
    text: block,
  }));
}

export const fits = ({ page, section, language, start = "" }: BlockRule, block: PageBlock): boolean =>
  (page ?? block.page) === block.page &&
  (section ?? block.section) === block.section &&
  (language ?? block.language) === block.language &&
  block.text.startsWith(start);

/** Returns the blocks that a test runs, by its path in the project. Throws when there are none. */
export function blocksRunBy(
  test: string,
  blocks: readonly PageBlock[] = pageBlocks,
  rules: readonly BlockRule[] = blockRules,
): readonly PageBlock[] {
  const found = blocks.filter((block) => {
    const run = rules.find((rule) => fits(rule, block))?.run;
    return run !== undefined && "by" in run && run.by === test;
  });
  if (found.length === 0) throw new Error(`no page has a block for ${test}`);
  return found;
}
