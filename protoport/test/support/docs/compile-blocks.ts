import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { projectFolder } from "../../../testing/src/process/child-program.ts";
import { generateGreetCode, writeOrderCode } from "../package/greet-code.ts";
import type { PageBlock } from "./page-blocks.ts";

const routes = `
import type { ConnectRouter } from "@connectrpc/connect";
export const routes = (router: ConnectRouter): ConnectRouter => router;
`;

/** Declares tests that code blocks compile, after the declarations that the text around them assumes. */
export function checkCode(blocks: readonly PageBlock[], surroundings: string, parent: string): void {
  let folder: string;
  let problems: string;

  beforeAll(() => {
    folder = mkdtempSync(join(projectFolder, parent, "code-blocks-"));
    const write = (name: string, text: string): void => writeFileSync(join(folder, name), text);
    const up = parent.replaceAll(/[^/]+/g, "..");
    const configuration = { extends: `../${up}/protoport/tsconfig.json`, include: ["."], exclude: [] };
    write("tsconfig.json", JSON.stringify(configuration));
    write("surroundings.d.ts", surroundings);
    write("routes.ts", routes);
    write("greetings.ts", "export const greetings = {};\n");
    generateGreetCode(folder);
    writeOrderCode(folder);
    for (const [index, { text }] of blocks.entries()) write(`block-${index}.ts`, `${text}\nexport {};\n`);
    problems = compile(folder);
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  const rows = blocks.map((block, index) => ({ ...block, index }));
  test.each(rows)("the code at line $line in $page compiles", ({ index }) => {
    expect(problems.split("\n").filter((line) => line.includes(`block-${index}.ts`))).toEqual([]);
  });

  test("the declarations that complete the documented code compile", () =>
    expect(problems.split("\n").filter((line) => /(?:surroundings|routes)\./.test(line))).toEqual([]));
}

function compile(folder: string): string {
  try {
    return execFileSync("tsc", ["-p", folder], { cwd: projectFolder, encoding: "utf8" });
  } catch (reason) {
    return reason instanceof Error && "stdout" in reason ? String(reason.stdout) : String(reason);
  }
}
