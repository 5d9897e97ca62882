#!/usr/bin/env node
import * as nodeModule from "node:module";
import { isSupportedNode } from "./is-supported-node.ts";

// All other code is imported after this check: an older Node would fail to parse it, before a line of it runs.
if (!isSupportedNode(process.versions.node)) {
  console.error(`plantstore: this is Node ${process.versions.node}, and 24.15 or newer is needed (of Node 25: 25.9)`);
  process.exit(1);
}

// Keeps compiled code between starts: 0.1 s becomes 0.04 s for what is imported after it.
nodeModule.enableCompileCache();
const { processTerminal } = await import("./process-terminal.ts");
const { runCommandLine } = await import("./run-command-line.ts");

process.exitCode = await runCommandLine(process.argv.slice(2), processTerminal());
