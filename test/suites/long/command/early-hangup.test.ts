import { readFileSync, writeFileSync } from "node:fs";
import { expect, test } from "vitest";
import { GreenhouseService } from "../../../../protoport/examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { descriptorSetOf } from "../../../../protoport/testing/src/gateway/descriptor-set.ts";
// oxfmt-ignore
import { type CommandLine, createTempFolder, projectFolder, signalAtLoad, startNode, type TempFolder
} from "@protoport/testing/process";
import { serve, startCommandLine } from "../../../support/process/index.ts";

// Tests SIGHUP in the first second. A program sends itself the signal when it loads a certain module.

/** Starts the proxy with a configuration file, which it can reload. */
function startProxy(args: readonly string[], folder: TempFolder, environment: Record<string, string>): CommandLine {
  writeFileSync(folder.file("set.binpb"), descriptorSetOf(GreenhouseService.file));
  const upstream = `{ addresses: ["http://127.0.0.1:1"], descriptors: ${folder.file("set.binpb")} }`;
  writeFileSync(folder.file("proxy.yaml"), `listen: { port: 0 }\nupstreams: [${upstream}]\n`);
  return startNode([`${projectFolder}/protoport/proxy/src/command/main.ts`, ...args], folder.path, environment);
}

const configured = ["--config", "proxy.yaml"];

test.each<{
  program: string;
  module: string;
  start: (folder: TempFolder, environment: Record<string, string>) => CommandLine;
  reloaded: RegExp;
}>([
  ...["/command/program.ts", "/command/proxy-server.ts", "/proxy/src/create-proxy.ts"].map((module) => ({
    program: "the proxy",
    module,
    start: (folder: TempFolder, environment: Record<string, string>) => startProxy(configured, folder, environment),
    reloaded: /^configuration reloaded$/m,
  })),
  ...[
    "/command/is-supported-node.ts",
    "/command/compile-cache.ts",
    "/command/run-command-line.ts",
    "/stores/sqlite/sqlite-store.ts",
  ].map((module) => ({ program: "the plant store", module, start: serve, reloaded: /"msg":"reloading"/ })),
])("$program survives SIGHUP while it loads $module, and then reloads", async ({ module, start, reloaded }) => {
  using folder = createTempFolder();
  await using server = start(folder, signalAtLoad("SIGHUP", module));
  await server.find(reloaded);
  expect(server.process.signalCode).toBe(null);
});

const programs = ["protoport/proxy/src/command/main.ts", "src/command/main.ts"];
test.each(programs)("%s loads no module before it handles SIGHUP", (file) => {
  expect(readFileSync(`${projectFolder}/${file}`, "utf8")).not.toMatch(/^(?:import|export) /m);
});

test.each<
  [command: string, module: string, start: (folder: TempFolder, environment: Record<string, string>) => CommandLine]
>(
  // oxfmt-ignore
  [
    ["plantstore serve --demo", "/command/run-command-line.ts",
      (folder, environment) => startCommandLine(["serve", "--demo"], folder.path, environment)],
    ["plantstore check", "/command/run-command-line.ts",
      (folder, environment) => startCommandLine(["check"], folder.path, environment)],
    ["protoport --check", "/command/program.ts",
      (folder, environment) => startProxy(["--check", ...configured], folder, environment)],
    ["protoport schema", "/command/program.ts", (folder, environment) => startProxy(["schema"], folder, environment)],
  ],
)("%s exits on SIGHUP", async (_command, module, start) => {
  using folder = createTempFolder();
  await using command = start(folder, signalAtLoad("SIGHUP", module));
  await command.end();
  expect(command.process.signalCode).toBe("SIGHUP");
});
