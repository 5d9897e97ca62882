#!/usr/bin/env node
import * as nodeModule from "node:module";

// All other code is imported below: an older Node would end with a SyntaxError of some file before a line of it runs.
const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
// The SQLite of an older one can lose its write-ahead log; 25.8 is refused as a whole because that of 25.8.0 can,
// although that of 25.8.2 cannot.
if (major < 24 || (major === 24 && minor < 15) || (major === 25 && minor < 9)) {
  console.error(`plantstore: this is Node ${process.versions.node}, and 24.15 or newer is needed (of Node 25: 25.9)`);
  process.exit(1);
}

// Keeps compiled code between starts: 0.1 s becomes 0.04 s. Hence the imports after the call.
nodeModule.enableCompileCache();
const { processTerminal } = await import("./process-terminal.ts");
const { runCommandLine } = await import("./run-command-line.ts");

process.exitCode = await runCommandLine(process.argv.slice(2), processTerminal());
