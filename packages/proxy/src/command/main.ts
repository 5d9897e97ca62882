#!/usr/bin/env node
import { processTerminal } from "./terminal.ts";

const args = process.argv.slice(2);
const terminal = processTerminal();

// Each command loads only what it needs.
if (args[0] === "check") {
  const { checkCommand } = await import("../check/index.ts");
  process.exitCode = await checkCommand(args.slice(1), terminal);
} else {
  const { proxyCommand } = await import("./proxy-command.ts");
  process.exitCode = await proxyCommand(args, terminal);
}
