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
  /** Resolves to the next line that it prints after the first. */
  nextLine(): Promise<string>;
  /** Asks it to end, and resolves to its exit code; `null` when the signal ended it. */
  stop(): Promise<number | null>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** Starts a program of examples/ on free ports, as its first line says; it prints the URL that it serves. */
export async function startExample(file: string): Promise<ExampleServer> {
  const program = [join(projectFolder, "examples", file), "0", "0"];
  const child = spawn(process.execPath, program, {
    env: { ...process.env, ...compileCache },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const exited = once(child, "exit");
  const complaints = text(child.stderr);
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
  const nextLine = async (): Promise<string> => {
    const line = await within(lines.next(), `${file} to print a line`);
    if (line.done === true) throw new Error(`${file} ended: ${await complaints}`);
    return line.value;
  };
  const { hostname, port } = new URL(await nextLine());
  const stop = async (signal: NodeJS.Signals): Promise<number | null> => {
    child.kill(signal);
    await within(exited, `the end of ${file}`);
    return child.exitCode;
  };
  return {
    address: { address: hostname, port: Number(port) },
    nextLine,
    stop: () => stop("SIGTERM"),
    [Symbol.asyncDispose]: async () => void (await stop("SIGKILL")),
  };
}
