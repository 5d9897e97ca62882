#!/usr/bin/env node
import { queueHangups } from "@protoport/command-line/queue-hangups";
import { isSupportedNode } from "./is-supported-node.ts";

const words = process.argv.slice(2);
// Only `serve` without `--demo` queues SIGHUP. Other commands exit on SIGHUP, such as when their terminal closes.
const onHangup = words[0] === "serve" && !words.includes("--demo") ? queueHangups() : () => undefined;

// Imports all other modules after this check, because an older Node cannot parse the modules.
if (!isSupportedNode(process.versions.node)) {
  console.error(
    `plantstore: Node.js must be 24.15 or newer (for Node.js 25: 25.9 or newer), got ${process.versions.node}`,
  );
  process.exit(1);
}

void run();

// Uses a function instead of top-level await, because the command is published as CommonJS.
async function run(): Promise<void> {
  const { cacheCompiledCode } = await import("./compile-cache.ts");
  cacheCompiledCode();
  const { preloadStorage } = await import("../server/preload-storage.ts");
  preloadStorage(words, process.env);
  const { processTerminal } = await import("./process-terminal.ts");
  const { runCommandLine } = await import("./run-command-line.ts");
  process.exitCode = await runCommandLine(words, processTerminal(onHangup));
}
