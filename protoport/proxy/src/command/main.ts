#!/usr/bin/env node
import { queueHangups } from "@protoport/command-line/queue-hangups";

const words = process.argv.slice(2);
// Only servers handle SIGHUP. SIGHUP terminates other commands.
const isServer = (words[0] === undefined || /^(?:serve$|-)/.test(words[0])) && !words.includes("--check");
const onHangup = isServer ? queueHangups() : () => undefined;

void run();

// A function instead of top-level await, so that bundlers can convert the command to CommonJS.
async function run(): Promise<void> {
  // Dynamic imports, so that SIGHUP is handled before the rest of the program is loaded.
  const { proxyCommand } = await import("./program.ts");
  const { processTerminal } = await import("./terminal.ts");
  process.exitCode = await proxyCommand(words, processTerminal(onHangup));
}
