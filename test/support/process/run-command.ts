import type { PlantTerminal } from "../../../src/command/command.ts";
import { runCommandLine } from "../../../src/command/run-command-line.ts";

export type Ended = { readonly exitCode: number; readonly out: readonly string[]; readonly err: readonly string[] };

/** Runs a command line in this process, with a slow terminal without progress. `terminal` replaces its members. */
export async function runCommand(
  words: readonly string[],
  environment: Readonly<Record<string, string>> = {},
  input: string = "",
  terminal: Partial<PlantTerminal> = {},
): Promise<Ended> {
  let out = "";
  let isFull = false;
  const err: string[] = [];
  const exitCode = await runCommandLine(words, {
    environment,
    onHangup: () => undefined,
    stopSignal: async () => await Promise.withResolvers<NodeJS.Signals>().promise,
    input: () => new Blob([input]).stream(),
    out: (line) => (out += `${line}\n`),
    write: async (text) => {
      if (isFull) throw new Error("the command wrote more without waiting for the stream to drain");
      isFull = true;
      await new Promise(setImmediate);
      isFull = false;
      out += text;
    },
    err: (line) => err.push(line),
    progress: undefined,
    ...terminal,
  });
  return { exitCode, out: out.split("\n").slice(0, -1), err };
}
