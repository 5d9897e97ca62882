import { type CommandOf, type Program, runProgram, textOf, UsageError } from "@protoport/command-line";
import { messageOf } from "@protoport/gateway/errors";
import { checkCommand, InputError } from "../check/index.ts";
import { openApiCommand, pluginCommand } from "../openapi/index.ts";
import { proxyConfigurationSchema, SettingsProblem } from "../settings/index.ts";
import { ConfigurationFile } from "./configuration-file.ts";
import { packageVersion } from "./package-version.ts";
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
    "mcp-stdio": {
      about:
        "Serves the tools of --mcp on standard input and output, for a client that starts this command. Opens no port, and logs to standard error. MCP_TOKEN is the bearer token for the upstream.",
    },
  },
  settings: settingFlags,
  notes: [
    "SIGHUP reads the configuration file, descriptors and certificates again; what is not valid leaves the previous ones",
    "in use. SIGTERM and SIGINT drain: /readyz returns 503 while calls are served for --drain-delay-ms, then the port is",
    "closed, and running calls have --drain-timeout-ms. A second signal stops the process immediately.",
  ],
  run: async (flags, _operands, terminal) => {
    // The server is loaded here, because other commands do not need it.
    const { serveProxy } = await import("./proxy-server.ts");
    const path = textOf(flags["config"]);
    const read = (): ReturnType<typeof readSettings> => readSettings(flags);
    const file = path === undefined ? undefined : new ConfigurationFile(path, read);
    const report = flags["check"] !== true ? "none" : flags["json"] === true ? "json" : "text";
    const settings = await read();
    if (flags["mcp-stdio"] !== true) return await serveProxy(settings, terminal, report, file);
    if (settings.tools === undefined) throw new UsageError("--mcp-stdio requires --mcp");
    const { err } = terminal;
    const client = { input: process.stdin, output: process.stdout, token: readToken(), err };
    const exitCode = await serveProxy(settings, { ...terminal, out: err }, report, file, client);
    // Output that the client does not read would keep the process alive.
    if (client.output.writableLength > 0) process.exit(exitCode);
    return exitCode;
  },
};

/** Returns the MCP client's token. @throws InputError for a malformed token. The message hides the token */
function readToken(): string | undefined {
  const token = process.env["MCP_TOKEN"];
  // RFC 6750 §2.1, "b64token".
  if (token === undefined || /^[A-Za-z0-9._~+/-]+=*$/.test(token)) return token;
  throw new InputError("MCP_TOKEN must be a bearer token of letters, digits and -._~+/, or be unset");
}

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
  version: packageVersion(),
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
