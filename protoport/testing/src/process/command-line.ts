import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { once } from "node:events";
import { compileCache } from "./child-program.ts";
import { within } from "../deadline.ts";

/** A command in a separate process. Dispose of the process with `await using`. */
export interface CommandLine {
  readonly process: ChildProcessWithoutNullStreams;
  readonly stdout: () => string;
  readonly stderr: () => string;
  /** The first match in the complete lines printed so far. Rejects after `limitMs`, or at an exit without a match. */
  find(pattern: RegExp, limitMs?: number): Promise<RegExpExecArray>;
  /** Resolves to the exit code once the process has exited, or to `null` if a signal terminated the process. */
  end(): Promise<number | null>;
  /** Sends a signal, and waits for the exit like {@link end}. */
  stop(signal: NodeJS.Signals): Promise<number | null>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** Starts a program on this Node, in a folder, with only PATH, a compile cache and these environment variables. */
export const startNode = (
  args: readonly string[],
  folder: string,
  environment: Readonly<Record<string, string>> = {},
): CommandLine => startProgram(process.execPath, args, folder, { ...compileCache, ...environment });

/** Starts a program with only PATH and these variables. @param detached - leads a separate process group */
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
      const search = (): void => {
        const match = pattern.exec(completeLines(stdout)) ?? pattern.exec(completeLines(stderr));
        if (match === null) return;
        child.stdout.off("data", search);
        child.stderr.off("data", search);
        child.off("close", rejectEnded);
        resolve(match);
      };
      const rejectEnded = (): void =>
        reject(new Error(`the program exited with ${String(child.exitCode)}:\n${stdout}${stderr}`));
      child.stdout.on("data", search);
      child.stderr.on("data", search);
      child.once("close", rejectEnded);
      search();
    });
  return {
    process: child,
    stdout: () => stdout,
    stderr: () => stderr,
    find: (pattern, limitMs) => within(found(pattern), String(pattern), limitMs),
    end,
    stop: async (signal) => {
      child.kill(signal);
      return await end();
    },
    [Symbol.asyncDispose]: async () => {
      if (child.exitCode === null && child.signalCode === null) child.kill("SIGKILL");
      await end();
    },
  };
}

// The last line may be incomplete.
const completeLines = (text: string): string => text.slice(0, text.lastIndexOf("\n") + 1);
