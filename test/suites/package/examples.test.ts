import { cpSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createUserProject, type UserProject } from "../../../protoport/test/support/package/user-project.ts";
import { packedHouses } from "../../support/package/packed-houses.ts";
import { type CommandLine, freePort, installRuntime, projectFolder, startProgram } from "@protoport/testing/process";

// Runs the commands in the comments of both houses' examples, in a project with the packages, on free ports.

const folders = ["examples", "protoport/examples"];
const peers = { "@grpc/grpc-js": "1.14.7", "@grpc/proto-loader": "0.8.1", "@connectrpc/connect-node": "2.3.0" };
const next = { next: "16.4.6", react: "19.3.1", "react-dom": "19.3.1", typescript: "5.9.3", "@types/react": "19.2.0" };

/** The programs that `npx` and PATH resolve for a command's first word. */
const programs: Readonly<Record<string, readonly [file: string, ...args: string[]]>> = {
  node: [process.execPath],
  next: [process.execPath, "node_modules/next/dist/bin/next"],
  bun: [await installRuntime("@oven/bun-linux-x64@1.4.5")],
  deno: [await installRuntime("@deno/linux-x64-glibc@2.9.6")],
};

const dependenciesOf = (example: string): Readonly<Record<string, string>> =>
  JSON.parse(readFileSync(join(projectFolder, example, "package.json"), "utf8")).dependencies;

let user: UserProject;

beforeAll(() => {
  user = createUserProject();
  const own = Object.values(packedHouses());
  const others = Object.entries({ ...dependenciesOf("protoport/examples/frameworks"), ...peers, ...next });
  const named = others.map(([name, version]) => `${name}@${version}`);
  user.run("npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", ...own, ...named);
  for (const folder of folders)
    cpSync(join(projectFolder, folder), join(user.path, folder), {
      recursive: true,
      filter: (name) => !name.includes("node_modules") && !/frameworks\/(package|tsconfig)/.test(name),
    });
  // next-route.ts at the path that its first line names, with the files that it imports next to it.
  const from = join(projectFolder, "protoport/examples");
  for (const part of ["servers", "gen"]) cpSync(join(from, part), join(user.path, "app", part), { recursive: true });
  cpSync(join(from, "fetch/gateway.ts"), join(user.path, "app/[...path]/gateway.ts"));
  cpSync(join(from, "fetch/next-route.ts"), join(user.path, "app/[...path]/route.ts"));
});
afterAll(() => rmSync(user.path, { recursive: true }));

/** The commands in an example's comment, which start it and call it. */
type Header = { readonly file: string; readonly start: string; readonly asks: readonly string[] };

const headers: readonly Header[] = folders
  .flatMap((folder) =>
    readdirSync(join(projectFolder, folder), { recursive: true, encoding: "utf8" }).map((name) => join(folder, name)),
  )
  .filter((name) => /\.[jt]s$/.test(name) && !/gen\/|node_modules/.test(name))
  .flatMap((name) => {
    const lines = readFileSync(join(projectFolder, name), "utf8").split("\n");
    const comment = lines.slice(
      0,
      lines.findIndex((line) => !line.startsWith("//")),
    );
    const start = comment.flatMap((line) => /: (?:npx )?((?:node|next|bun|deno) .*)$/.exec(line)?.[1] ?? [])[0];
    const asks = comment.flatMap((line) => /^\/\/ {3}(curl .*)$/.exec(line)?.[1] ?? []);
    return start === undefined ? [] : [{ file: name, start, asks }];
  });

const servers = headers.filter(({ asks }) => asks.length > 0);

/** Runs a command like a user, and waits until it prints where it listens. */
async function startServer(command: string, pattern: RegExp): Promise<CommandLine> {
  const [name = "", ...words] = command.split(" ");
  const [file, ...args] = programs[name] ?? [name];
  const environment = { HOME: user.path, NEXT_TELEMETRY_DISABLED: "1" };
  const server = startProgram(file, [...args, ...words], user.path, environment);
  await server.find(pattern);
  return server;
}

test("at least 15 examples document a start command, and 12 curl commands", () => {
  expect(headers.length).toBeGreaterThan(14);
  expect(servers.length).toBeGreaterThan(11);
});

test.each(servers)("$file serves in a new project with its documented commands", async ({ start, asks }) => {
  const ports = new Map<string, string>();
  for (const port of start.match(/\b\d{4}\b/g) ?? []) ports.set(port, String(await freePort()));
  const here = (text: string): string => text.replaceAll(/\b\d{4}\b/g, (port) => ports.get(port) ?? port);
  await using server = await startServer(here(start), /http:\/\//);
  for (const ask of asks)
    expect(user.run("bash", "-c", here(ask).replace("curl", "curl -sS --fail-with-body"))).not.toBe("");
  expect(server.process.exitCode).toBeNull();
  // Next has a separate process behind the command, which exits with it when it is stopped.
  server.process.kill("SIGTERM");
  await server.end();
});

test("embed.ts and the clients run in a new project as documented", async () => {
  const startOf = (file: string): string => headers.find((header) => header.file === file)?.start ?? "";
  const token = user.run("npx", "plantstore", "token", "create", "NAME", "--file", "tokens").trim();
  const port = String(await freePort());
  await using server = await startServer(startOf("examples/embed.ts").replace("8080", port), /plants at/);
  const clients = headers.flatMap(({ file, start }) => (file.startsWith("examples/clients/") ? [start] : []));
  for (const [at, client] of clients.entries()) {
    const id = String(at + 1);
    const words = client.replace("8080", port).replace("TOKEN", token).replace(/42$/, id).split(" ").slice(1);
    expect(user.run(process.execPath, ...words)).toBe(`plant ${String(at + 1)} is deleted\n`);
  }
  expect(clients).toHaveLength(5);
  expect(server.process.exitCode).toBeNull();
});
