import { createHash } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { request as requestHttps } from "node:https";
import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { delimiter, join } from "node:path";
import { json } from "node:stream/consumers";
import { expect, test } from "vitest";
import { createIssuedCertificate } from "@protoport/testing/http";
import { type CommandLine, createTempFolder, projectFolder, startProgram } from "@protoport/testing/process";
import { blocksRunBy } from "../../support/docs/page-blocks.ts";

// Runs shell command blocks in order in a folder with a certificate, with `plantstore` on PATH. A free port replaces
// the documented one, and the loopback address replaces 0.0.0.0. Exported variables remain set for the following
// commands. The output must be the documented one, apart from tokens and their hashes. A server, which does not exit by
// itself, gets a deletion with the token that the block created.

type Step = { readonly command: string; readonly shown: string | undefined };
const token = /\bplantstore_[0-9a-z]{57}\b/;
const tokenHash = /\bsha256:[0-9a-f]{64}\b/g;

function stepsOf(language: string, text: string): Step[] {
  if (language === "sh") return text.split("\n").map((command) => ({ command, shown: undefined }));
  return text
    .split(/^\$ /m)
    .slice(1)
    .map((step) => {
      const [command = "", ...shown] = step.trimEnd().split("\n");
      return { command, shown: shown.join("\n") };
    });
}

const comparable = (output: string): string =>
  output
    .trim()
    .replaceAll(tokenHash, "sha256:HASH")
    .replace(token, "TOKEN")
    .replace(/ in \d+\.\d s$/, " in TIME s");

/** A folder in which commands run. Dispose it with `using`. */
interface Workspace extends Disposable {
  /** The authority's certificate, which issued the one in the folder. */
  readonly authority: string;
  start(command: string): CommandLine;
  /** Sets environment variables for commands that start later, such as `A=1 B=2`. */
  export(variables: string): void;
}

function openWorkspace(): Workspace {
  const folder = createTempFolder();
  const { authority, cert, key } = createIssuedCertificate("localhost");
  writeFileSync(folder.file("cert.pem"), cert);
  writeFileSync(folder.file("key.pem"), key);
  mkdirSync(folder.file("bin"));
  const program = [process.execPath, join(projectFolder, "src/command/main.ts")].map((part) => `"${part}"`).join(" ");
  writeFileSync(folder.file("bin/plantstore"), `#!/bin/sh\nexec ${program} "$@"\n`, { mode: 0o755 });
  const exported: Record<string, string> = {};
  const path = [folder.file("bin"), process.env["PATH"]].join(delimiter);
  return {
    authority,
    start: (command) => {
      const here = command.replaceAll("0.0.0.0", "127.0.0.1");
      return startProgram("sh", ["-c", `exec env ${here}`], folder.path, { ...exported, PATH: path, PORT: "0" });
    },
    export: (variables) => {
      for (const [, name = "", value = ""] of variables.matchAll(/(\w+)=(\S*)/g)) exported[name] = value;
    },
    [Symbol.dispose]: () => folder[Symbol.dispose](),
  };
}

async function run(place: Workspace, { command, shown }: Step): Promise<string> {
  await using running = place.start(command);
  expect(await running.end(), command).toBe(0);
  const output = running.stderr() + running.stdout();
  if (shown !== undefined) expect(comparable(output), command).toBe(comparable(shown));
  return output;
}

const blocks = blocksRunBy("test/suites/clients/documented-commands.test.ts");

test.each(blocks)("the commands at line $line in $page print the documented output", async ({ language, text }) => {
  using place = openWorkspace();
  let printed = "";
  for (const step of stepsOf(language, text)) {
    if (step.command.startsWith("export ")) {
      place.export(step.command);
      continue;
    }
    if (!step.command.endsWith("plantstore serve")) {
      printed += await run(place, step);
      continue;
    }
    await using running = place.start(step.command);
    const [, port = ""] = await running.find(/"port":(\d+)/);
    const [credential = ""] = token.exec(printed) ?? [];
    const authority = step.command.includes("TLS_CERT_FILE") ? place.authority : undefined;
    const want = { error: 5, message: "plant 4200 not found" };
    expect(await deletePlant(authority, Number(port), credential)).toEqual(want);
  }
  expect(printed).toMatch(token);
});

const tokenBlocks = blocks.filter(({ text }) => text.includes("sha256:"));
test.each(tokenBlocks)("the token at line $line in $page has the documented hash", ({ text }) => {
  const [shown = ""] = token.exec(text.replaceAll(tokenHash, "")) ?? [];
  expect(text).toContain(`sha256:${createHash("sha256").update(shown).digest("hex")}`);
});

/** Deletes plant 4200, which does not exist, over TLS if there is an authority to trust, and returns the error. */
async function deletePlant(authority: string | undefined, port: number, credential: string): Promise<unknown> {
  const headers = { authorization: `Bearer ${credential}`, connection: "close" };
  if (authority === undefined)
    return await (await fetch(`http://127.0.0.1:${String(port)}/plants/4200`, { method: "DELETE", headers })).json();
  const url = `https://localhost:${String(port)}/plants/4200`;
  const request = requestHttps(url, { method: "DELETE", headers, ca: authority, agent: false });
  request.end();
  const [response]: IncomingMessage[] = await once(request, "response");
  return response === undefined ? undefined : await json(response);
}
