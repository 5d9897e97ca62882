import { copyFileSync, rmSync } from "node:fs";
import { basename, delimiter, dirname, join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { blocksRunBy, type PageBlock } from "../../support/docs/page-blocks.ts";
import { createUserProject, installedPackages, packed } from "../../support/package/user-project.ts";
import { type CommandLine, freePort, startProgram } from "@protoport/testing/process";

// Follows all blocks in protoport/docs/tutorials/first-service.md in order, in a folder with the packages' tarballs. A file's
// first line is its name. The port is replaced by a free one, and only the project's Node is on PATH.

const port = String(await freePort());
const searched = (process.env["PATH"] ?? "").split(delimiter).filter((folder) => !folder.includes("node_modules"));
const path = [dirname(process.execPath), ...searched].join(delimiter);

/** A file to write, or a command with the part of its output that the page shows. */
type Step = { readonly line: number; readonly does: string } & (
  | { readonly file: string; readonly text: string }
  | { readonly command: string; readonly shown: string | undefined }
);

function stepsOf({ language, line, text: documented }: PageBlock): Step[] {
  const text = documented.replaceAll("8080", port);
  if (language === "sh" || language === "console")
    return text.split(language === "sh" ? "\n" : /^\$ /m).flatMap((one) => {
      const [command = "", ...shown] = one.trimEnd().split("\n");
      const printed = language === "sh" ? undefined : shown.join("\n");
      return command === "" ? [] : [{ line, does: command, command, shown: printed }];
    });
  const [, file = ""] = /^(?:\/\/|#) (\S+)\n/.exec(text) ?? [];
  return [{ line, does: file, file, text }];
}

const steps = blocksRunBy("protoport/test/suites/package/tutorial.test.ts").flatMap(stepsOf);
const reader = createUserProject();
let server: CommandLine | undefined;

async function startServer(command: string, shown: string): Promise<void> {
  server?.process.kill("SIGTERM");
  await server?.end();
  server = startProgram("sh", ["-c", `exec ${command}`], reader.path, { PATH: path });
  await server.find(/\n/);
  expect(server.stdout().trimEnd()).toBe(shown);
}

beforeAll(() => {
  for (const tarball of Object.values(packed())) copyFileSync(tarball, join(reader.path, basename(tarball)));
  // Created by `npm init`.
  rmSync(join(reader.path, "package.json"));
});
afterAll(async () => {
  await server?.[Symbol.asyncDispose]();
  rmSync(reader.path, { recursive: true });
});

test.each(steps)("the tutorial's line $line succeeds ($does)", async (step) => {
  if ("file" in step) return reader.write(step.file, step.text);
  if (step.command === "node server.ts") return await startServer(step.command, step.shown ?? "");
  const printed = reader.run("env", `PATH=${path}`, "sh", "-c", step.command);
  if (step.shown !== undefined) expect(printed.trimEnd()).toBe(step.shown);
});

test("the tutorial's server serves its docs page, and stops on SIGTERM", async () => {
  expect(await (await fetch(server?.stdout().trim() ?? "")).text()).toMatch(/^<!doctype html>/);
  server?.process.kill("SIGTERM");
  expect(await server?.end()).toBe(0);
});

test("the tutorial installs no packages that only other programs need", () => {
  expect(installedPackages(reader)).toContain("@protoport/gateway");
  expect(installedPackages(reader).filter((name) => /^(?:jose|pg|pino)$/.test(name))).toEqual([]);
});
