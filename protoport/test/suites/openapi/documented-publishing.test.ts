import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { buildLimitMs, buildStep, type ProgramResult, projectFolder, runProgram } from "@protoport/testing/process";
import { requirements } from "../../../testing/src/requirements.ts";
import { descriptorSetOf } from "../../../testing/src/gateway/descriptor-set.ts";
import { file_orders_v1_orders } from "../../../testing/src/gen/orders/v1/orders_pb.ts";
import { blocksRunBy, pageBlocks } from "../../support/docs/page-blocks.ts";

// The commands under "Lint and publish" in protoport/docs/how-to/openapi.md, in a user's repository. They run in the page's order. Each test uses
// the earlier tests' files.

const blocks = blocksRunBy("protoport/test/suites/openapi/documented-publishing.test.ts");
const commands = blocks.filter(({ language }) => language === "sh").flatMap(({ text }) => text.split("\n"));
let folder: string;
let path: string;
beforeAll(async () => {
  // Inside the project, so that its packages are resolved as in a user's program.
  folder = mkdtempSync(join(projectFolder, "protoport/test/publishing-"));
  writeFileSync(join(folder, "definition.binpb"), descriptorSetOf(file_orders_v1_orders));
  const base = pageBlocks.find(({ page, language }) => page.endsWith("/openapi.md") && language === "yaml");
  writeFileSync(join(folder, "base.yaml"), base?.text ?? "");
  // `npx` with the checkout's proxy, and the version of redocly that the suite has installed.
  const { dependencies } = JSON.parse(readFileSync(join(import.meta.dirname, "package.json"), "utf8"));
  const redocly = `@redocly/cli@${dependencies["@redocly/cli"]}`;
  const main = join(projectFolder, "protoport/proxy/src/command/main.ts");
  const npx = `#!/bin/sh
name=$1
shift
case "$name" in
  @protoport/proxy) exec "${process.execPath}" "${main}" "$@" ;;
  ${redocly}) exec redocly "$@" ;;
  *) echo "not installed: $name" >&2; exit 127 ;;
esac
`;
  writeFileSync(join(folder, "npx"), npx, { mode: 0o755 });
  const goPath = (await buildStep("go", ["env", "GOPATH"])).trim();
  const installed = ["node_modules/.bin", "protoport/test/suites/openapi/node_modules/.bin"];
  const folders = [folder, ...installed.map((name) => join(projectFolder, name)), join(goPath, "bin")];
  path = [...folders, process.env["PATH"]].join(delimiter);
}, buildLimitMs);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function run(command: string): Promise<ProgramResult> {
  const environment = { PATH: path, REDOCLY_TELEMETRY: "off", REDOCLY_SUPPRESS_UPDATE_NOTICE: "true" };
  return runProgram("sh", ["-c", command], { folder, environment, limitMs: buildLimitMs });
}

async function runDocumented(start: string): Promise<ProgramResult> {
  const [command, ...others] = commands.filter((each) => each.startsWith(start));
  if (command === undefined || others.length > 0) throw new Error(`the page must have one command "${start} …"`);
  ran.add(command);
  return await run(command);
}

const ran = new Set<string>();

test("the documented command writes the OpenAPI document", async () => {
  expect(await runDocumented("npx @protoport/proxy openapi")).toMatchObject({ exitCode: 0, stderr: "" });
  expect(JSON.parse(readFileSync(join(folder, "openapi.json"), "utf8"))).toMatchObject({ info: { title: "Orders" } });
});

test("redocly accepts the description, and rejects one with a mistake", async () => {
  const { exitCode, stdout, stderr } = await runDocumented("npx @redocly/cli@2.77.0 lint");
  expect([exitCode, stdout + stderr]).toEqual([0, expect.stringContaining("Your API description is valid")]);
  expect(stdout + stderr).not.toMatch(/warnings?\b(?!:)/i);
  const wrong = readFileSync(join(folder, "openapi.json"), "utf8").replace("paths", "path");
  writeFileSync(join(folder, "wrong.json"), wrong);
  expect((await run("npx @redocly/cli@2.77.0 lint wrong.json")).exitCode).toBe(1);
});

test("the page documents the oasdiff version that the suite installs", () =>
  expect(commands).toContain(`go install ${requirements.oasdiff.go}`));

test("oasdiff reports no change, and then a changed path as breaking", async () => {
  const identity = "-c user.name=a -c user.email=a@example.com";
  const commit = `git init -qb main . && git add openapi.json && git ${identity} commit -qm published`;
  expect(await run(commit)).toMatchObject({ exitCode: 0 });
  expect(await runDocumented("git show")).toMatchObject({ exitCode: 0 });
  expect((await runDocumented("oasdiff breaking")).exitCode).toBe(0);
  const file = join(folder, "openapi.json");
  const text = readFileSync(file, "utf8");
  writeFileSync(file, text.replaceAll("/orders/{id}", "/shipments/{id}"));
  const breaking = commands.find((command) => command.startsWith("oasdiff breaking")) ?? "";
  expect(await run(breaking)).toMatchObject({ exitCode: 1, stdout: expect.stringContaining("/orders/{id}") });
  const { exitCode, stdout } = await runDocumented("oasdiff changelog");
  expect([exitCode, stdout]).toEqual([0, expect.stringContaining("/shipments/{id}")]);
  writeFileSync(file, text);
});

test("redocly builds an HTML page with the operations", async () => {
  expect(await runDocumented("npx @redocly/cli@2.77.0 build-docs")).toMatchObject({ exitCode: 0 });
  expect(readFileSync(join(folder, "site/index.html"), "utf8")).toContain("/orders/{id}");
});

test("the tests ran every command on the page except the installation", () =>
  expect(commands.filter((command) => !ran.has(command) && !command.startsWith("go install "))).toEqual([]));
