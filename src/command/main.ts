#!/usr/bin/env node
import { isSupportedNode } from "./is-supported-node.ts";

// All other code is imported after this check: an older Node would fail to parse it, before a line of it runs.
if (!isSupportedNode(process.versions.node)) {
  console.error(`plantstore: this is Node ${process.versions.node}, and 24.15 or newer is needed (of Node 25: 25.9)`);
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
