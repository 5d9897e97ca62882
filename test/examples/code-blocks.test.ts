import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { projectFolder } from "../support/process/child-program.ts";
import { blockRules, fits, pageBlocks, pages, readPage, ruleOf } from "../support/docs/page-blocks.ts";

const blocks = pageBlocks.filter(({ language }) => language === "ts");

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
  const callerOf: (authorization: string | null) => Promise<string | undefined>;
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
  for (const [index, { text }] of blocks.entries()) write(`block-${index}.ts`, `${text}\nexport {};\n`);
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

test.each(pages)("every fence of %s opens or ends a block that is known", (page) => {
  const fences = readPage(page).match(/^\s*(?:```|~~~)/gm) ?? [];
  expect(fences.length).toBe(2 * pageBlocks.filter((block) => block.page === page).length);
});

test.each(pageBlocks)("a rule says what is done with the block at line $line of $page", (block) => {
  expect(ruleOf(block)).toBeDefined();
});

test.each(blockRules)("rule %# of the table, for $language, has a block and a test", ({ run, ...rule }) => {
  expect(pageBlocks.some((block) => fits({ run, ...rule }, block))).toBe(true);
  if ("by" in run) expect(existsSync(join(projectFolder, run.by))).toBe(true);
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

const readme = readPage("README.md");

test.each(pages.filter((page) => page.startsWith("docs/")))("the README leads to %s", (page) => {
  expect(readme).toContain(`](${page})`);
});

// A link to a file of the project, without what follows "#".
const links = pages.flatMap((page) =>
  [...new Set(readPage(page).match(/(?<=\]\()(?!https?:|#)[^)#]+/g))].map((target) => ({ page, target })),
);

test.each(links)("$target, to which $page leads, is there", ({ page, target }) => {
  expect(existsSync(join(projectFolder, dirname(page), target))).toBe(true);
});
