import { once } from "node:events";
import type { Terminal } from "./command.ts";
import { exitCode } from "./exit-code.ts";

/** Returns this process as a terminal. */
export function processTerminal(): Terminal {
  const { stdin, stdout, stderr } = process;
  // Whoever reads has gone, as in `plantstore export | head`: nobody is left to be told.
  stdout.on("error", () => process.exit(exitCode.failure));
  return {
    environment: process.env,
    input: () => stdin,
    out: (line) => stdout.write(`${line}\n`),
    write: async (text) => {
      if (!stdout.write(text)) await once(stdout, "drain");
    },
    err: (line) => stderr.write(`${line}\n`),
    // ECMA-48: carriage return, then erase to the end of the line.
    progress: stderr.isTTY ? (line) => stderr.write(`\r\u001b[K${line}`) : undefined,
  };
}
