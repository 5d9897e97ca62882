import { delimiter, join } from "node:path";
import { spawnSync } from "node:child_process";
import { afterAll, beforeAll, expect, test } from "vitest";
import { projectFolder } from "../support/process/child-program.ts";
import { type CommandLine, startCommandLine } from "../support/process/command-line.ts";
import { blocksRunBy } from "../support/docs/page-blocks.ts";
import { createTempFolder } from "../support/process/temp-folder.ts";

// The session that docs/demo.md shows, once more: what is typed there is run, what is shown there must come.

/** One command of the session, and what it printed. */
interface Step {
  readonly command: string;
  readonly shown: string;
}

const [{ text: session } = { text: "" }] = blocksRunBy("test/clients/demo.test.ts");
/** The token of the page, with most of it left out. */
const [, shortened = "none"] = /Bearer (\S+…\S+)$/m.exec(session) ?? [];
const [start, ...steps]: Step[] = session
  .split(/^\$ /m)
  .slice(1)
  .map((text) => ({ command: text.slice(0, text.indexOf("\n")), shown: text.slice(text.indexOf("\n") + 1).trim() }));

const folder = createTempFolder();
let demo: CommandLine;
let authority = "";
let token = "";

beforeAll(async () => {
  demo = startCommandLine(["serve", "--demo"], folder.path, { PORT: "0" });
  await demo.find(/buf curl .*\n/);
  [, authority = ""] = await demo.find(/http:\/\/(127\.0\.0\.1:\d+)/);
  [, token = ""] = await demo.find(/Bearer (\S+)/);
});
afterAll(async () => {
  await demo[Symbol.asyncDispose]();
  folder[Symbol.dispose]();
});

/** Puts the address and the token of this run in the place of those of the page. */
function here(text: string): string {
  return text.replaceAll("127.0.0.1:8080", authority).replaceAll(shortened, token);
}

/** Dates and ids of requests differ from run to run, and the progress of curl is for terminals. */
function comparable(text: string): string {
  return text
    .replaceAll("\r", "")
    .replaceAll(/^date: .*$/gm, "date: now")
    .replaceAll(/^x-request-id: [0-9a-f]{16}-\d+$/gm, "x-request-id: some")
    .trim();
}

test("npm start prints what the page shows, and lines to paste", () => {
  expect(start?.command).toBe("npm start");
  expect(demo.stdout().startsWith(here(start?.shown ?? "none"))).toBe(true);
});

test.each(steps)("$command", ({ command, shown }) => {
  // In the order of the page: a plant is deleted once.
  const path = [join(projectFolder, "node_modules/.bin"), process.env["PATH"]].join(delimiter);
  const { stdout, stderr } = spawnSync("bash", ["-c", here(command).replace("curl -i", "curl -s -i")], {
    cwd: projectFolder,
    env: { ...process.env, PATH: path },
    encoding: "utf8",
  });
  // npx talks about its configuration on standard error.
  const said = stderr.replaceAll(/^npm warn .*\n/gm, "");
  expect(comparable(stdout + said)).toBe(comparable(here(shown)));
});
