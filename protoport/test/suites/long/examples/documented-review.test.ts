import { cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { parse } from "yaml";
import { severities } from "../../../../proxy/src/definitions/compare/index.ts";
import { createTempFolder, type ProgramResult, projectFolder, runProgram } from "@protoport/testing/process";
import { pageBlocks } from "../../../support/docs/page-blocks.ts";

// Runs protoport/docs/how-to/review-changes.md in a user's repository, with its definition, its change, its commands and its
// workflow.

const page = "protoport/docs/how-to/review-changes.md";
const blocks = pageBlocks.filter((block) => block.page === page);
const [commands = "", accept = ""] = textsOf("sh");
const [checkOut = "", link = "", breaking = "", build = "", compare = ""] = commands.split("\n");
const [breakingReport = "", report = "", accepted = ""] = textsOf("text");

function textsOf(language: string): readonly string[] {
  return blocks.filter((block) => block.language === language).map(({ text }) => text);
}

// The repository is in a folder, next to which the commands create a worktree.
const folder = createTempFolder();
const repository = folder.file("shop");
afterAll(() => folder[Symbol.dispose]());

/** Runs a command in the repository, with the `npx` that a user who has installed buf and the proxy has. */
async function run(command: string): Promise<ProgramResult> {
  const PATH = [folder.file("bin"), join(projectFolder, "node_modules/.bin"), process.env["PATH"]].join(delimiter);
  const environment = { PATH, GITHUB_BASE_REF: "main", GIT_CONFIG_GLOBAL: "/dev/null", GIT_CONFIG_SYSTEM: "/dev/null" };
  return await runProgram("sh", ["-c", command], { folder: repository, environment });
}

beforeAll(async () => {
  mkdirSync(folder.file("bin"));
  const main = join(projectFolder, "protoport/proxy/src/command/main.ts");
  const npx = `#!/bin/sh\n[ "$1" = @protoport/proxy ] || exec "$@"\nshift\nexec node ${main} "$@"\n`;
  writeFileSync(folder.file("bin/npx"), npx, { mode: 0o755 });
  mkdirSync(join(repository, "proto/shop/v1"), { recursive: true });
  const packageProto = "node_modules/@protoport/gateway/proto";
  const google = join(packageProto, "google/api");
  cpSync(join(projectFolder, "protoport/gateway/proto/google/api"), join(repository, google), { recursive: true });
  folder.write("shop/.gitignore", "node_modules\n");
  folder.write("shop/buf.yaml", `version: v2\nmodules:\n  - path: proto\n  - path: ${packageProto}\n`);
  const file = join(repository, "proto/shop/v1/shop.proto");
  writeFileSync(file, textsOf("proto")[0] ?? "");
  const commit = "git add . && git -c user.name=a -c user.email=a@example.com commit -qm One";
  expect(await run(`git init -qb main && ${commit} && git branch origin/main`)).toMatchObject({ exitCode: 0 });
  const lines = (textsOf("diff")[0] ?? "").split("\n");
  const changed = ["-", "+"].map((sign) => lines.filter((line) => line.startsWith(sign)).map((line) => line.slice(1)));
  const [removed = [], added = []] = changed;
  expect([removed.length, added.length]).toEqual([2, 2]);
  const text = removed.reduce((all, line, at) => all.replace(line, added[at] ?? ""), readFileSync(file, "utf8"));
  writeFileSync(file, text);
  for (const command of [checkOut, link, build]) expect(await run(command)).toMatchObject({ exitCode: 0 });
}, 60_000);

test("the documented commands print the documented reports", async () => {
  expect(await run(breaking)).toEqual({ exitCode: 100, stdout: `${breakingReport}\n`, stderr: "" });
  expect(await run(compare)).toEqual({ exitCode: 1, stdout: `${report}\n`, stderr: "" });
});

test("the documented file accepts the changed route", async () => {
  folder.write("shop/accepted-changes.txt", accepted);
  const { exitCode, stdout, stderr } = await run(accept);
  expect([exitCode, stderr]).toEqual([0, ""]);
  expect(stdout).toContain("\n0 changes break clients, 0 may; 1 accepted.\n");
});

test("the documented workflow annotates both breaking changes and fails", async () => {
  const { steps } = parse(textsOf("yaml")[0] ?? "").jobs.review;
  const stepCommands: readonly string[] = steps.flatMap(({ run: command }: { readonly run?: string }) => command ?? []);
  expect(stepCommands.slice(0, 2)).toEqual(["npm ci", build]);
  const [addWorktree = "", linkModules, breakingStep = "", checkStep = ""] = stepCommands.slice(2);
  expect([addWorktree.replace('"origin/$GITHUB_BASE_REF"', "main"), linkModules]).toEqual([checkOut, link]);
  const printed = expect.stringMatching(/^::error file=proto\/shop\/v1\/shop\.proto,line=18,.*note/);
  expect(await run(breakingStep)).toMatchObject({ exitCode: 100, stdout: printed });
  const removed = expect.stringMatching(/^::error file=proto\/shop\/v1\/shop\.proto,line=7,title=route-removed::/);
  expect(await run(checkStep)).toMatchObject({ exitCode: 1, stdout: removed });
});

test("the page lists every rule, and which are warnings", () => {
  const text = readFileSync(join(projectFolder, page), "utf8");
  const [warnings = ""] = /[^.]* are\s+warnings/.exec(text) ?? [];
  const rules = Array.from(text.matchAll(/^\| `([a-z-]+)` \|/gm), ([, rule = ""]) => rule);
  const documented = rules.map((rule) => [rule, warnings.includes(`\`${rule}\``) ? "warning" : "error"]);
  expect(Object.fromEntries(documented)).toEqual(severities);
});
