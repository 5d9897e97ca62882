import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, readdirSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { compileCache, residentBytes, within } from "@protoport/testing";

/** Milliseconds between two checks whether a program serves. */
const pollIntervalMs = 100;
/** Milliseconds before a program that could not start is started again, as a supervisor does. */
const restartDelayMs = 500;
/** Time limit in ms for a program's exit after SIGTERM: the program's limit of 20 s, and time for a busy machine. */
const stopLimitMs = 60_000;
/** The exit code when a program cannot start, such as a replica whose database is down. */
const cannotStart = 1;
export type Usage = { readonly residentMiB: number; readonly openFiles: number };

export interface ServiceOptions {
  readonly name: string;
  /** The URL that responds once the program serves. */
  readonly probeUrl: string;
  readonly logFile: string;
  readonly environment?: Readonly<Record<string, string>>;
  /** Is called with a sentence for each exit that was not requested. */
  readonly onProblem: (problem: string) => void;
}

/** A server program that can be killed, frozen and restarted. */
export class Service {
  /** The program and its arguments, used by the next start. */
  command: readonly string[];
  readonly name: string;
  readonly #options: ServiceOptions;
  #child: ChildProcess | undefined;

  constructor(command: readonly string[], options: ServiceOptions) {
    this.command = command;
    this.name = options.name;
    this.#options = options;
  }

  /** Starts the program, again and again if it cannot start, and resolves once it serves. */
  async start(): Promise<void> {
    const { probeUrl, logFile, environment, onProblem } = this.#options;
    const env = { PATH: process.env["PATH"], ...compileCache, ...environment };
    for (;;) {
      const [program = "", ...args] = this.command;
      const output = openSync(logFile, "a");
      const child = spawn(program, args, { stdio: ["ignore", output, output], env });
      closeSync(output);
      this.#child = child;
      while (isRunning(child)) {
        if (await responds(probeUrl)) {
          child.once("exit", (code, signal) => {
            if (this.#child === child) onProblem(`${this.name} exited with ${String(code ?? signal)}`);
          });
          return;
        }
        await sleep(pollIntervalMs);
      }
      if (child.exitCode !== cannotStart)
        throw new Error(`${this.name} exited with ${String(child.exitCode)} at its start`);
      await sleep(restartDelayMs);
    }
  }

  signal(name: NodeJS.Signals): void {
    this.#child?.kill(name);
  }

  async kill(): Promise<void> {
    await this.#end("SIGKILL");
  }

  async stop(): Promise<void> {
    const code = await this.#end("SIGTERM");
    if (code !== 0) this.#options.onProblem(`${this.name} exited with ${String(code)} after SIGTERM`);
  }

  async restart(): Promise<void> {
    await this.stop();
    await this.start();
  }

  usage(): Usage | undefined {
    if (this.#child === undefined || !isRunning(this.#child)) return undefined;
    const { pid } = this.#child;
    const openFiles = readdirSync(`/proc/${String(pid)}/fd`).length;
    return { residentMiB: Math.round(residentBytes(pid) / 2 ** 20), openFiles };
  }

  async #end(signal: "SIGKILL" | "SIGTERM"): Promise<number | null> {
    const child = this.#child;
    this.#child = undefined;
    if (child === undefined || !isRunning(child)) return null;
    const exited = once(child, "exit");
    child.kill(signal);
    await within(exited, `the exit of ${this.name}`, stopLimitMs);
    return child.exitCode;
  }
}

async function responds(url: string): Promise<boolean> {
  try {
    await (await fetch(url, { signal: AbortSignal.timeout(1_000) })).body?.cancel();
    return true;
  } catch {
    return false;
  }
}

const isRunning = ({ exitCode, signalCode }: ChildProcess): boolean => exitCode === null && signalCode === null;
