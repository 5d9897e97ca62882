#!/usr/bin/env node
import { queueHangups } from "@plantstore/command-line/queue-hangups";

const words = process.argv.slice(2);
// Commands that end by themselves are not included. SIGHUP terminates them, as it does when their terminal is closed.
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
