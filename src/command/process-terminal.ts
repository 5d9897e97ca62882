import { once } from "node:events";
import { addAbortSignal } from "node:stream";
import { firstStopSignal } from "@protoport/command-line";
import { exitCode, type PlantTerminal } from "./command.ts";

/** Returns the terminal for this process. @param ignoresOutputErrors - whether the command continues without its output */
export function processTerminal(onHangup: PlantTerminal["onHangup"], ignoresOutputErrors = false): PlantTerminal {
  const { stdin, stdout, stderr } = process;
  // EPIPE counts as success, as for `plantstore export | head`. Any other error loses output, so the command fails.
  stdout.on("error", ({ code }: NodeJS.ErrnoException) => {
    if (!ignoresOutputErrors) process.exit(code === "EPIPE" ? exitCode.ok : exitCode.failure);
  });
  // Without its messages, a command still has its effect and its exit code.
  stderr.on("error", () => undefined);
  return {
    environment: process.env,
    onHangup,
    stopSignal: firstStopSignal,
    input: (signal) => addAbortSignal(signal, stdin),
    out: (line) => stdout.write(`${line}\n`),
    write: async (text) => {
      if (!stdout.write(text)) await once(stdout, "drain");
    },
    err: (line) => stderr.write(`${line}\n`),
    // Writes a carriage return, and erases to the end of the line (ECMA-48).
    progress: stderr.isTTY ? (line) => stderr.write(`\r\u001b[K${line}`) : undefined,
  };
}
