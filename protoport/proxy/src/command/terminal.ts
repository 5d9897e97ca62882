import { type CommandOutput, firstStopSignal } from "@protoport/command-line";
import { LineOutput } from "@protoport/telemetry/logs";

/** A long-running command's output, and the signals that it receives. */
export interface Terminal extends CommandOutput {
  /** Resolves at the first SIGTERM or SIGINT, as {@link firstStopSignal} does. */
  stopRequested(): Promise<unknown>;
  /** Calls a function on each SIGHUP, and immediately if a SIGHUP was received before. */
  readonly onHangup: (reload: () => void) => void;
}

/**
 * Returns this process's terminal, which drops lines while 4 MiB are unread. SIGTERM and SIGINT get listeners only
 * when `stopRequested` is called.
 */
export function processTerminal(onHangup: Terminal["onHangup"]): Terminal {
  const output = new LineOutput(process.stdout, (lines) => `${lines} lines dropped: they were not read fast enough\n`);
  return {
    out: (text) => output.write(`${text}\n`),
    err: (text) => void process.stderr.write(`${text}\n`),
    stopRequested: () => firstStopSignal(),
    onHangup,
  };
}
