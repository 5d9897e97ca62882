import { delimiter, join } from "node:path";
import { spawnSync } from "node:child_process";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { shared } from "../../../protoport/testing/src/shared.ts";
import packageJson from "../../../package.json" with { type: "json" };
import { createTempFolder, projectFolder, startNode } from "@protoport/testing/process";
import { blocksRunBy } from "../../support/docs/page-blocks.ts";

// The sessions with the demo in README.md and docs/tutorials/demo.md. Runs each command with the server of `npm start`,
// and compares its output with the page. Replaces the address, the token and its file by this run's.

type Step = { readonly command: string; readonly shown: string };
type Session = { readonly page: string; readonly steps: readonly Step[] };

const sessions: readonly Session[] = blocksRunBy("test/suites/clients/demo.test.ts").map(({ page, text }) => ({
  page,
  steps: text
    .split(/^\$ /m)
    .slice(1)
    .map((step) => ({ command: step.slice(0, step.indexOf("\n")), shown: step.slice(step.indexOf("\n") + 1).trim() })),
}));

/** The arguments that `npm start` passes to node, for any working directory. */
const startArguments: readonly string[] = packageJson.scripts.start
  .replace(/^.*\bnode /, "")
  .split(" ")
  .map((word) => (word.endsWith(".ts") ? join(projectFolder, word) : word));

describe.each(sessions)("the documented session in $page", ({ steps }) => {
  const folder = createTempFolder();
  /** The page's abbreviated token. */
  const [, shortened = "none"] = /Bearer (\S+…\S+)/.exec(steps.map(({ shown }) => shown).join("\n")) ?? [];
  // The variables that a shell keeps for the following commands.
  const assignments = steps.filter(({ command }) => /^\w+=\S/.test(command)).map(({ command }) => `${command}; `);
  let authority = "";
  let token = "";
  afterAll(() => folder[Symbol.dispose]());
  const demo = shared(() => startNode(startArguments, folder.path, { PORT: "0" }));
  beforeAll(async () => {
    await demo.find(/buf curl .*\n/);
    [, authority = ""] = await demo.find(/http:\/\/(127\.0\.0\.1:\d+)/);
    [, token = ""] = await demo.find(/Bearer (\S+)/);
  });

  const here = (shown: string): string =>
    shown
      .replaceAll("127.0.0.1:8080", authority)
      .replaceAll(shortened, token)
      .replaceAll(".plantstore/token", folder.file(".plantstore/token"));

  test.each(steps)('"$command" prints the documented output', ({ command, shown }) => {
    if (command === "npm start") {
      // The output begins as on the page. Commands to paste follow.
      expect(demo.stdout().startsWith(here(shown))).toBe(true);
      return;
    }
    // Runs in the page's order, because a plant can be deleted only once.
    const path = [join(projectFolder, "node_modules/.bin"), process.env["PATH"]].join(delimiter);
    const script = assignments.join("") + command.replace(/^curl /, "curl -s ");
    const env = { ...process.env, PATH: path };
    const { stdout, stderr } = spawnSync("bash", ["-c", here(script)], { cwd: projectFolder, env, encoding: "utf8" });
    // npx warns about its configuration on standard error.
    const errors = stderr.replaceAll(/^npm warn .*\n/gm, "");
    expect(comparable(stdout + errors)).toBe(comparable(here(shown)));
  });
});

/** Dates and request ids differ from run to run. */
function comparable(text: string): string {
  return text
    .replaceAll("\r", "")
    .replaceAll(/^date: .*$/gm, "date: now")
    .replaceAll(/^x-request-id: [0-9a-f]{16}-\d+$/gm, "x-request-id: some")
    .trim();
}
