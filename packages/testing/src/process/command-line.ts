import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { once } from "node:events";
import { compileCache } from "./child-program.ts";
import { within } from "../deadline.ts";

/** A command in a separate process. Dispose of it with `await using`. */
export interface CommandLine {
  readonly process: ChildProcessWithoutNullStreams;
  readonly stdout: () => string;
  readonly stderr: () => string;
  /**
   * Resolves to what a pattern finds in the lines of the output once they are whole; rejects when the process ends before,
   * or after `limitMs`.
   */
  find(pattern: RegExp, limitMs?: number): Promise<RegExpExecArray>;
  /** Resolves to the exit code once the process has ended; `null` when a signal ended it. */
  end(): Promise<number | null>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** Starts a program on this Node, in a folder and with only PATH, a compile cache and the given environment. */
export function startNode(
  args: readonly string[],
  folder: string,
  environment: Readonly<Record<string, string>> = {},
): CommandLine {
  return startProgram(process.execPath, args, folder, { ...compileCache, ...environment });
}

/**
 * Starts any program, in a folder and with only PATH and the given environment.
 *
 * @param detached - whether it leads a separate process group, which gets the signals that a terminal would send
 */
export function startProgram(
  file: string,
  args: readonly string[],
  folder: string,
  environment: Readonly<Record<string, string>> = {},
  detached: boolean = false,
): CommandLine {
  const env = { PATH: process.env["PATH"], ...environment };
  const child = spawn(file, args, { cwd: folder, env, detached });
  let stdout = "";
  let stderr = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => (stdout += text));
  child.stderr.setEncoding("utf8").on("data", (text: string) => (stderr += text));
  const closed = once(child, "close");
  const end = async (): Promise<number | null> => {
    await within(closed, "the end of the command");
    return child.exitCode;
  };
  const found = (pattern: RegExp): Promise<RegExpExecArray> =>
    new Promise((resolve, reject) => {
      const look = (): void => {
        const match = pattern.exec(wholeLines(stdout)) ?? pattern.exec(wholeLines(stderr));
        if (match === null) return;
        child.stdout.off("data", look);
        child.stderr.off("data", look);
        child.off("close", rejectEnded);
        resolve(match);
      };
      const rejectEnded = (): void => reject(new Error(`it ended with ${String(child.exitCode)}:\n${stdout}${stderr}`));
      child.stdout.on("data", look);
      child.stderr.on("data", look);
      child.once("close", rejectEnded);
      look();
    });
  return {
    process: child,
    stdout: () => stdout,
    stderr: () => stderr,
    find: (pattern, limitMs) => within(found(pattern), String(pattern), limitMs),
    end,
    [Symbol.asyncDispose]: async () => {
      if (child.exitCode === null && child.signalCode === null) child.kill("SIGKILL");
      await end();
    },
  };
}

// The rest may be half a number.
function wholeLines(text: string): string {
  return text.slice(0, text.lastIndexOf("\n") + 1);
}
