import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { blocksRunBy } from "../../support/docs/page-blocks.ts";
import { projectFolder } from "../../../packages/testing/src/process/child-program.ts";
import { type CommandLine, startNode } from "../../../packages/testing/src/process/command-line.ts";

// The first screen of the gateway's README: a gateway in a few lines, and its responses to curl.

const [program, session] = ["ts", "console"].map(
  (language) =>
    blocksRunBy("test/suites/clients/gateway-readme.test.ts").find((block) => block.language === language)?.text ?? "",
);
const steps = (session ?? "")
  .split(/^\$ /m)
  .slice(1)
  .map((text) => ({ command: text.slice(0, text.indexOf("\n")), shown: text.slice(text.indexOf("\n") + 1).trim() }));

let folder: string;
let gateway: CommandLine;
let authority = "";

beforeAll(async () => {
  // Inside the project, so that "plantstore" and its dependencies are found as a user's program finds them.
  folder = mkdtempSync(join(projectFolder, "test/readme-"));
  const file = join(folder, "gateway.ts");
  const listening = program?.replace("await gateway.listen({ port: 8080 })", "const { port } = await gateway.listen()");
  writeFileSync(file, `${listening}\nconsole.log(\`127.0.0.1:\${port}\`);\n`);
  gateway = startNode([file], folder, {});
  [authority = ""] = await gateway.find(/127\.0\.0\.1:\d+/);
});
afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});

test("the README of the gateway has commands", () => {
  expect(steps.length).toBeGreaterThan(1);
});

test.each(steps)("$command", ({ command, shown }) => {
  const here = command.replaceAll("127.0.0.1:8080", authority).replace("curl", "curl -s");
  expect(execFileSync("bash", ["-c", here], { encoding: "utf8" }).trim()).toBe(shown);
});
