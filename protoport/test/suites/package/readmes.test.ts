import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { cpSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { blocksRunBy, pageBlocks } from "../../support/docs/page-blocks.ts";
import { generateGreetCode } from "../../support/package/greet-code.ts";
import { type ScopeRegistry, serveTarballs } from "../../support/package/local-registry.ts";
import { createUserProject, packed, type UserProject } from "../../support/package/user-project.ts";
import { buildStep, type CommandLine, freePort, startProgram } from "@protoport/testing/process";

// Tests the packages' READMEs. Installs their packages from a registry, runs their programs unchanged, and compares
// what their commands print. Ports are replaced by free ones.

const pages = [...new Set(blocksRunBy("protoport/test/suites/package/readmes.test.ts").map(({ page }) => page))];
const ports = new Map<string, string>();
for (const port of ["8080", "8081", "9464", "50051"]) ports.set(port, String(await freePort()));

const here = (text: string): string =>
  text.replaceAll(/\b(?:8080|8081|9464|50051)\b/g, (port) => ports.get(port) ?? port);

type Server = { readonly words: readonly string[]; readonly port: string };
let registry: ScopeRegistry;
const generated = createUserProject();

beforeAll(async () => {
  registry = await serveTarballs(Object.values(packed()));
  generateGreetCode(generated.path);
});
afterAll(() => {
  registry[Symbol.dispose]();
  rmSync(generated.path, { recursive: true });
});

function programsOf(page: string): Map<string, string> {
  const blocks = pageBlocks.filter((block) => block.page === page && block.language === "ts");
  return new Map(blocks.map(({ text }) => [/^\/\/ (\S+)\n/.exec(text)?.[1] ?? "", here(text)]));
}

async function installFrom({ url }: ScopeRegistry, command: string, folder: string): Promise<void> {
  writeFileSync(join(folder, ".npmrc"), `@protoport:registry=${url}/\n`);
  const environment = { npm_config_prefer_offline: "true" };
  await buildStep("bash", ["-c", `${command} --no-audit --no-fund`], { folder, environment });
}

async function startServer(project: UserProject, { words, port }: Server): Promise<CommandLine> {
  const program = startProgram(process.execPath, words, project.path, { HOME: project.path });
  await untilPort(Number(port), program);
  return program;
}

/** The programs on another page that a page's commands need. */
const companions: Readonly<Record<string, { readonly page: string; readonly name: string }>> = {
  "protoport/README.md": { page: "protoport/gateway/README.md", name: "operations.ts" },
  "protoport/rest-client/README.md": { page: "protoport/README.md", name: "server.ts" },
  "protoport/proxy/README.md": { page: "protoport/gateway/README.md", name: "operations.ts" },
};

describe.each(pages)("%s", (page) => {
  const blocks = pageBlocks.filter((block) => block.page === page);
  const commands = blocks.filter(({ language }) => language === "sh").flatMap(({ text }) => here(text).split("\n"));
  const sessions = blocks
    .filter(({ language }) => language === "console")
    .flatMap(({ text }) => here(text).split(/^\$ /m).slice(1));
  let project: UserProject;

  beforeAll(() => {
    project = createUserProject();
    for (const name of ["gen", "proto"])
      cpSync(join(generated.path, name), join(project.path, name), { recursive: true });
  });
  afterAll(() => rmSync(project.path, { recursive: true }));

  test("the documented commands print the documented output", async () => {
    await using programs = new AsyncDisposableStack();
    const installs = commands.filter((command) => command.startsWith("npm install "));
    const companion = companions[page];
    if (companion !== undefined) installs.push("npm install @protoport/gateway @protoport/proxy");
    for (const install of installs) await installFrom(registry, install, project.path);
    const own = programsOf(page);
    const started =
      companion === undefined
        ? own
        : new Map([...programsOf(companion.page)].filter(([name]) => name === companion.name).concat([...own]));
    for (const [name, text] of started) {
      project.write(name, text);
      const port = portOf(text);
      if (!name.startsWith("client")) programs.use(await startServer(project, { words: [name], port }));
    }
    for (const command of commands.filter((each) => each.startsWith("npx "))) {
      const words = command.replace("npx @protoport/proxy", "node_modules/.bin/protoport").split(" ");
      programs.use(await startServer(project, { words, port: words[words.indexOf("--port") + 1] ?? "" }));
    }
    expect(sessions).not.toEqual([]);
    for (const session of sessions) {
      const [command = "", ...shown] = session.trimEnd().split("\n");
      const quiet = command.replace(/^curl (?!-s)/, "curl -s ");
      const printed = execFileSync("bash", ["-c", quiet], { cwd: project.path, encoding: "utf8" });
      expect(printed.trimEnd(), command).toBe(shown.join("\n"));
    }
    for (const { text } of blocks.filter(({ language }) => language === "js")) {
      const words = ["--input-type=module", "--eval", here(text)];
      const printed = execFileSync(process.execPath, words, { encoding: "utf8" });
      expect(text).toContain(`// ${printed.trimEnd()}`);
    }
  });
});

const portOf = (text: string): string => [...text.matchAll(/listen\(\{ port: (\d+) \}\)/g)].at(-1)?.[1] ?? "";

/** Resolves when a program listens on a port on this machine. Rejects with its output if it exits before. */
async function untilPort(port: number, program: CommandLine): Promise<void> {
  while (program.process.exitCode === null) {
    const socket = connect(port, "127.0.0.1");
    const isOpen = await once(socket, "connect").then(
      () => true,
      () => false,
    );
    socket.destroy();
    if (isOpen) return;
    await setTimeout(20);
  }
  throw new Error(`the program exited: ${program.stderr()}`);
}
