import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { projectFolder } from "./child-program.ts";
import { within } from "./deadline.ts";
import type { Address } from "./exchange.ts";
import { tokens } from "./plant-server.ts";

/** The whole server as an operator runs it: a process of its own, started by the command line. */
export interface ChildServer {
  readonly address: Address;
  readonly process: ChildProcess;
  /** Sends a signal and waits for the end; resolves to the exit code, `null` when the signal ended it. */
  stop(signal: NodeJS.Signals): Promise<number | null>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** A server takes a second to start on a busy machine; one that takes this long has not started, in ms. */
const startLimitMs = 15_000;

/** Starts `plantstore serve` on a free port with an SQLite file as its store. Dispose of it with `await using`. */
export async function startChildServer(databaseFile: string): Promise<ChildServer> {
  const child = spawn(process.execPath, [join(projectFolder, "src/cli/main.ts"), "serve"], {
    env: {
      ...process.env,
      HOST: "127.0.0.1",
      PORT: "0",
      DATABASE_URL: `sqlite:${databaseFile}`,
      PLANTSTORE_TOKENS: tokens.good,
      PLANTSTORE_DRAIN_DELAY_MS: "0",
      LOG_LEVEL: "info",
    },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const port = await within(listeningPort(child), "the server to listen", startLimitMs);
  // Read on, or a full pipe would stop the server.
  child.stdout.resume();
  child.stderr.resume();
  const stop = async (signal: NodeJS.Signals): Promise<number | null> => {
    if (child.exitCode !== null || child.signalCode !== null) return child.exitCode;
    const exited = once(child, "exit");
    child.kill(signal);
    await within(exited, `the end of the server after ${signal}`, startLimitMs);
    return child.exitCode;
  };
  return {
    address: { address: "127.0.0.1", port },
    process: child,
    stop,
    [Symbol.asyncDispose]: async () => void (await stop("SIGKILL")),
  };
}

// The log line that says where the server listens is the one with a port in it.
async function listeningPort(child: ChildProcess): Promise<number> {
  const lines: string[] = [];
  const { stdout, stderr } = child;
  if (stdout === null || stderr === null) throw new Error("the server's output is not piped");
  return await new Promise((resolve, reject) => {
    const read = (line: string): void => {
      lines.push(line);
      const port = /"port":(\d+)/.exec(line)?.[1];
      if (port !== undefined) resolve(Number(port));
    };
    createInterface(stdout).on("line", read);
    createInterface(stderr).on("line", read);
    child.once("exit", (code) => reject(new Error(`the server ended with ${String(code)}:\n${lines.join("\n")}`)));
  });
}
