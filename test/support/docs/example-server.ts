import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { text } from "node:stream/consumers";
import { compileCache, projectFolder } from "../process/child-program.ts";
import { within } from "../deadline.ts";
import type { Address } from "../carriers/exchange.ts";

/** An example that serves, in a process of its own. Dispose of it with `await using`. */
export interface ExampleServer {
  readonly address: Address;
  /** Asks it to end, and resolves to its exit code; `null` when the signal ended it. */
  stop(): Promise<number | null>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** Starts a program of examples/ on a free port, as its first line says; it prints the URL that it serves. */
export async function startExample(file: string): Promise<ExampleServer> {
  const program = [join(projectFolder, "examples", file), "0"];
  const child = spawn(process.execPath, program, {
    env: { ...process.env, ...compileCache },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const exited = once(child, "exit");
  const complaints = text(child.stderr);
  const line = new Promise<string>((resolve, reject) => {
    createInterface(child.stdout).once("line", resolve);
    void exited.then(async () => reject(new Error(`${file} ended: ${await complaints}`)));
  });
  const { hostname, port } = new URL(await within(line, `${file} to listen`));
  const stop = async (signal: NodeJS.Signals): Promise<number | null> => {
    child.kill(signal);
    await within(exited, `the end of ${file}`);
    return child.exitCode;
  };
  return {
    address: { address: hostname, port: Number(port) },
    stop: () => stop("SIGTERM"),
    [Symbol.asyncDispose]: async () => void (await stop("SIGKILL")),
  };
}
