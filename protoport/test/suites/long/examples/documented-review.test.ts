import { cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { parse } from "yaml";
import { severities } from "../../../../proxy/src/compare/index.ts";
import { projectFolder, type ProgramResult, runProgram } from "../../../../testing/src/process/child-program.ts";
import { createTempFolder } from "../../../../testing/src/process/temp-folder.ts";
import { pageBlocks } from "../../../support/docs/page-blocks.ts";

// Runs protoport/docs/how-to/review-changes.md in a user's repository, with its definition, its change, its commands and its
// workflow.

const page = "protoport/docs/how-to/review-changes.md";
const blocks = pageBlocks.filter((block) => block.page === page);
const [build = "", compare = "", accept = ""] = textsOf("sh").flatMap((text) => text.split("\n"));
const [report = "", accepted = ""] = textsOf("text");

function textsOf(language: string): readonly string[] {
  return blocks.filter((block) => block.language === language).map(({ text }) => text);
}

const folder = createTempFolder();
afterAll(() => folder[Symbol.dispose]());

/** Runs a command in the repository, with the `npx` that a user who has installed buf and the proxy has. */
async function run(command: string): Promise<ProgramResult> {
  const PATH = [folder.file("bin"), join(projectFolder, "node_modules/.bin"), process.env["PATH"]].join(delimiter);
  const environment = { PATH, GITHUB_BASE_REF: "main", GIT_CONFIG_GLOBAL: "/dev/null", GIT_CONFIG_SYSTEM: "/dev/null" };
  return await runProgram("sh", ["-c", command], { folder: folder.path, environment });
}

beforeAll(async () => {
  mkdirSync(folder.file("bin"));
  const main = join(projectFolder, "protoport/proxy/src/command/main.ts");
  const npx = `#!/bin/sh\n[ "$1" = @protoport/proxy ] || exec "$@"\nshift\nexec node ${main} "$@"\n`;
  writeFileSync(folder.file("bin/npx"), npx, { mode: 0o755 });
  folder.write("buf.yaml", "version: v2\nmodules:\n  - path: proto\n");
  mkdirSync(folder.file("proto/shop/v1"), { recursive: true });
  cpSync(join(projectFolder, "protoport/gateway/proto/google/api"), folder.file("proto/google/api"), {
    recursive: true,
  });
  const file = folder.file("proto/shop/v1/shop.proto");
  writeFileSync(file, textsOf("proto")[0] ?? "");
  const commit = "git add . && git -c user.name=a -c user.email=a@example.com commit -qm One";
  expect(await run(`git init -qb main && ${commit} && git branch origin/main`)).toMatchObject({ exitCode: 0 });
  const lines = (textsOf("diff")[0] ?? "").split("\n");
  const changed = ["-", "+"].map((sign) => lines.filter((line) => line.startsWith(sign)).map((line) => line.slice(1)));
  const [removed = [], added = []] = changed;
  expect([removed.length, added.length]).toEqual([2, 2]);
  const text = removed.reduce((all, line, at) => all.replace(line, added[at] ?? ""), readFileSync(file, "utf8"));
  writeFileSync(file, text);
  expect(await run(build)).toMatchObject({ exitCode: 0 });
}, 60_000);

test("the documented command prints the documented report", async () => {
  expect(await run(compare)).toEqual({ exitCode: 1, stdout: `${report}\n`, stderr: "" });
});

test("the documented file accepts the changed route", async () => {
  folder.write("accepted-changes.txt", accepted);
  const { exitCode, stdout, stderr } = await run(accept);
  expect([exitCode, stderr]).toEqual([1, ""]);
  expect(stdout).toContain("\n1 change breaks clients, 0 may; 1 accepted.\n");
});

test("the documented workflow annotates the breaking change and fails", async () => {
  const { steps } = parse(textsOf("yaml")[0] ?? "").jobs.review;
  const commands: readonly string[] = steps.flatMap(({ run: command }: { readonly run?: string }) => command ?? []);
  expect(commands.slice(0, 2)).toEqual(["npm ci", build]);
  expect(commands).toHaveLength(3);
  const { exitCode, stdout } = await run(commands[2] ?? "");
  expect([exitCode, stdout]).toEqual([
    1,
    expect.stringMatching(/^::error file=proto\/shop\/v1\/shop\.proto,line=7,title=route-removed::/),
  ]);
});

test("the page lists every rule with its severity", () => {
  const rows = readFileSync(join(projectFolder, page), "utf8").matchAll(/^\| `([a-z-]+)` \| (\w+) \|/gm);
  expect(Object.fromEntries(Array.from(rows, ([, rule, severity]) => [rule, severity]))).toEqual(severities);
});
