import { firstStopSignal } from "@plantstore/command-line";
import { LineOutput } from "@plantstore/telemetry/logs";

/** A command's output. */
export interface Output {
  readonly print: (text: string) => void;
  readonly printError: (text: string) => void;
}

/** A long-running command's output, and the signals that it receives. */
export interface Terminal extends Output {
  /** Resolves at the first SIGTERM or SIGINT, as {@link firstStopSignal} does. */
  stopRequested(): Promise<unknown>;
  /** Calls a function on each SIGHUP, and immediately if a SIGHUP was received before. */
  readonly onHangup: (reload: () => void) => void;
}

/**
 * Returns this process's terminal. Lines are dropped while 4 MiB are not read. SIGTERM and SIGINT get listeners only
 * when `stopRequested` is called.
 */
export function processTerminal(onHangup: Terminal["onHangup"]): Terminal {
  const output = new LineOutput(process.stdout, (lines) => `${lines} lines dropped: they were not read fast enough\n`);
  return {
    print: (text) => output.write(`${text}\n`),
    printError: (text) => void process.stderr.write(`${text}\n`),
    stopRequested: () => firstStopSignal(),
    onHangup,
  };
}
