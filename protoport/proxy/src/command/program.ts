import { type CommandOf, type Program, runProgram, textOf, UsageError } from "@protoport/command-line";
import { messageOf } from "@protoport/gateway/errors";
import { checkCommand, InputError, openApiCommand, pluginCommand } from "../definitions/index.ts";
import { proxyConfigurationSchema, SettingsProblem } from "../settings/index.ts";
import { ConfigurationFile } from "./configuration-file.ts";
import { proxyVersion } from "./serving-parts.ts";
import { readSettings, settingFlags } from "./read-settings.ts";
import type { Terminal } from "./terminal.ts";

/** Serves until a signal stops the process. */
const serveCommand: CommandOf<Terminal> = {
  name: "serve",
  summary: "serve gRPC services over REST, Connect, gRPC-Web and gRPC; runs if no command is named",
  flags: {
    config: { value: "FILE", about: "Reads settings from this file; flags replace its settings." },
    check: { about: "Reports what would be served, or what is wrong, and exits." },
    json: { about: "With --check, prints the report as JSON." },
    openapi: { about: "Prints the OpenAPI document that would be served at /openapi.json, and exits." },
  },
  settings: settingFlags,
  notes: [
    "SIGHUP reads the configuration file, descriptors and certificates again; what is not valid leaves the previous ones",
    "in use. SIGTERM and SIGINT drain: /readyz returns 503 while calls are served for --drain-delay-ms, then the port is",
    "closed, and running calls have --drain-timeout-ms. A second signal stops the process immediately.",
  ],
  run: async (flags, _operands, terminal) => {
    if (flags["openapi"] === true && (flags["check"] === true || flags["json"] === true))
      throw new UsageError("--openapi cannot be combined with --check or --json");
    // The server is loaded here, because other commands do not need it.
    const { serveProxy } = await import("./proxy-server.ts");
    const path = textOf(flags["config"]);
    const read = (): ReturnType<typeof readSettings> => readSettings(flags);
    const file = path === undefined ? undefined : new ConfigurationFile(path, read);
    const check = flags["check"] !== true ? "none" : flags["json"] === true ? "json" : "text";
    const report = flags["openapi"] === true ? "openapi" : check;
    return await serveProxy(await read(), terminal, report, file);
  },
};

const schemaCommand: CommandOf<Terminal> = {
  name: "schema",
  summary: "print the JSON Schema of the configuration file",
  run: (_flags, _operands, terminal) => {
    terminal.out(JSON.stringify(proxyConfigurationSchema(), undefined, 2));
    return Promise.resolve(0);
  },
};

const program: Program<Terminal> = {
  name: "protoport",
  about: "REST, Connect and gRPC-Web in front of gRPC services in any language.",
  version: proxyVersion(),
  commands: [serveCommand, checkCommand, openApiCommand, pluginCommand, schemaCommand],
  defaultCommand: serveCommand,
  exitCodes: { 0: "success", 1: "failure", 2: "invalid usage, setting or file" },
  fail: (error, terminal) => {
    const isInvalid = error instanceof InputError || error instanceof SettingsProblem;
    terminal.err(isInvalid ? error.message : `cannot start the proxy: ${messageOf(error)}`);
    return isInvalid ? 2 : 1;
  },
};

/** Runs a proxy command line, and returns its exit code. Never throws. */
export function proxyCommand(words: readonly string[], terminal: Terminal): Promise<number> {
  return runProgram(program, words, terminal);
}
