#!/usr/bin/env node
import { processTerminal } from "./terminal.ts";

const words = process.argv.slice(2);
const terminal = processTerminal();

// Each command loads what it needs alone.
if (words[0] === "proxy") {
  const { proxyCommand } = await import("./proxy-command.ts");
  process.exitCode = await proxyCommand(words.slice(1), terminal);
} else {
  const { checkCommand } = await import("../check/index.ts");
  process.exitCode = await checkCommand(words, terminal);
}
