import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { projectFolder } from "../support/child-program.ts";

/** A block of TypeScript that readers are shown. */
interface CodeBlock {
  readonly page: string;
  readonly line: number;
  readonly code: string;
}

const pages = ["README.md", ...readdirSync(join(projectFolder, "docs")).map((name) => `docs/${name}`)].filter((name) =>
  name.endsWith(".md"),
);
const blocks = pages.flatMap(codeBlocksOf);

function codeBlocksOf(page: string): CodeBlock[] {
  const text = readFileSync(join(projectFolder, page), "utf8");
  return [...text.matchAll(/^```ts\n(.*?)^```/gms)].map(({ index, 1: code = "" }) => ({
    page,
    line: text.slice(0, index).split("\n").length,
    code,
  }));
}

// What the text around the blocks says is there already.
const surroundings = `
import type { ConnectRouter } from "@connectrpc/connect";
import type { PlantStore } from "plantstore";
import type { createGateway as create } from "plantstore/gateway";
import type { IncomingMessage, ServerResponse } from "node:http";
/** What an application of Express and one of Fastify have of this. */
interface App {
  use(handler: (request: IncomingMessage, response: ServerResponse, next: () => void) => void): void;
  addHook(
    name: "onRequest",
    hook: (request: { raw: IncomingMessage }, reply: { raw: ServerResponse }, done: () => void) => void,
  ): void;
}
declare global {
  const app: App;
  const gateway: ReturnType<typeof create>;
  const token: string;
  const store: PlantStore;
  const routes: (router: ConnectRouter) => void;
  const createGateway: typeof create;
}
`;
const routes = `
import type { ConnectRouter } from "@connectrpc/connect";
const routes = (router: ConnectRouter): ConnectRouter => router;
export default routes;
`;
const configuration = { extends: "../../tsconfig.json", include: ["."], exclude: [] };

let folder: string;
let problems: string;

beforeAll(() => {
  // Inside the project, so that "plantstore" and its dependencies are found as a user's program finds them.
  folder = mkdtempSync(join(projectFolder, "test/code-blocks-"));
  const write = (name: string, text: string): void => writeFileSync(join(folder, name), text);
  write("tsconfig.json", JSON.stringify(configuration));
  write("surroundings.d.ts", surroundings);
  write("routes.ts", routes);
  for (const [index, { code }] of blocks.entries()) write(`block-${index}.ts`, `${code}\nexport {};\n`);
  problems = compile();
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function compile(): string {
  try {
    return execFileSync("tsc", ["-p", folder], { cwd: projectFolder, encoding: "utf8" });
  } catch (reason) {
    return reason instanceof Error && "stdout" in reason ? String(reason.stdout) : String(reason);
  }
}

test("there are blocks to look at", () => {
  expect(blocks.length).toBeGreaterThan(4);
});

test.each(blocks.map((block, index) => ({ ...block, index })))(
  "the code at line $line of $page compiles",
  ({ index }) => {
    expect(problems.split("\n").filter((line) => line.includes(`block-${index}.ts`))).toEqual([]);
  },
);

test("what surrounds the blocks compiles", () => {
  expect(problems.split("\n").filter((line) => /(?:surroundings|routes)\./.test(line))).toEqual([]);
});

const readme = readFileSync(join(projectFolder, "README.md"), "utf8");

test.each(pages.filter((page) => page.startsWith("docs/")))("the README leads to %s", (page) => {
  expect(readme).toContain(`](${page})`);
});

// A link to a file of the project, without what follows "#".
const links = pages.flatMap((page) =>
  [...readFileSync(join(projectFolder, page), "utf8").matchAll(/\]\((?!https?:|#)([^)#]+)/g)].map(
    ([, target = ""]) => ({
      page,
      target,
    }),
  ),
);

test.each(links)("$target, to which $page leads, is there", ({ page, target }) => {
  expect(existsSync(join(projectFolder, dirname(page), target))).toBe(true);
});
