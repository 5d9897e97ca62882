#!/usr/bin/env node
import { isSupportedNode } from "./is-supported-node.ts";

// All other code is imported after this check: an older Node would fail to parse it, before a line of it runs.
if (!isSupportedNode(process.versions.node)) {
  console.error(`plantstore: Node.js must be 24.15 or newer (for Node.js 25: 25.9 or newer), got ${process.versions.node}`);
  process.exit(1);
}

void run();

// Without `await` outside of it, because the package has the command as CommonJS.
async function run(): Promise<void> {
  const { keepCompiledCode } = await import("./compile-cache.ts");
  keepCompiledCode();
  const { beginStorage } = await import("../server/begin-storage.ts");
  beginStorage(process.argv.slice(2), process.env);
  const { processTerminal } = await import("./process-terminal.ts");
  const { runCommandLine } = await import("./run-command-line.ts");
  process.exitCode = await runCommandLine(process.argv.slice(2), processTerminal());
}
