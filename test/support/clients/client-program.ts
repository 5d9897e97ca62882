import { spawn, type ChildProcessWithoutNullStreams } from "node:child_process";
import { createInterface } from "node:readline";
import { projectFolder } from "../../../packages/testing/src/process/child-program.ts";
import { within } from "../../../packages/testing/src/deadline.ts";
import type { TestPlantServer } from "../server/plant-server.ts";

/**
 * A program made with a generated client, in whatever language.
 *
 * It takes as arguments where the server is (`localhost:8080`) and, for TLS, the file of the authority to
 * trust. For each line of its input, `<id> <token> <deadline in ms>` with `-` for none, it deletes the plant
 * and writes one line: the number of the gRPC status code, and behind a space the message of an error.
 *
 * For a line `<load> <token> <amount>` it puts a {@link Load} on the server, and writes a line `<times> <outcome>` for
 * each outcome that it saw, and an empty one behind the last; programs without streams take no loads of them.
 */
export interface ClientProgram {
  /** The program and its first arguments. */
  readonly command: readonly [string, ...string[]];
  readonly folder?: string;
  readonly environment?: Readonly<Record<string, string>>;
}

/** The first line of a program that has to start a virtual machine on a busy computer, or all of a load on it, in ms. */
export const answerLimitMs = 240_000;

/** Deletions of 64 callers for so many seconds, a stream of so many pieces both ways, or one of so many that only come. */
export type Load = "load" | "echo" | "count";

/** A program that runs. Dispose of it with `using`. */
export interface RunningClient {
  deletePlant(id: bigint, token: string | undefined, deadlineMs?: number): Promise<string>;
  /** Resolves to how often it saw which outcome: code and message of calls, with "#" for the plant, and the size of pieces. */
  load(load: Load, token: string | undefined, amount: number): Promise<Readonly<Record<string, number>>>;
  [Symbol.dispose](): void;
}

/** Starts a program with the arguments that it takes. */
export function startClient({ command, folder, environment }: ClientProgram, args: readonly string[]): RunningClient {
  const [file, ...first] = command;
  const child = spawn(file, [...first, ...args], {
    cwd: folder ?? projectFolder,
    env: { ...process.env, ...environment },
  });
  const lines = readLines(child);
  const ask = async (what: string, token = "-", amount: number | "-" = "-"): Promise<string> => {
    child.stdin.write(`${what} ${token} ${amount}\n`);
    return await within(lines(), `an answer of ${file}`, answerLimitMs);
  };
  return {
    deletePlant: (id, token, deadlineMs) => ask(String(id), token, deadlineMs),
    load: async (load, token, amount) => {
      const counts: Record<string, number> = {};
      // Each line is a count and what was counted, and an empty one the end.
      for (let line = await ask(load, token, amount); line !== ""; line = await lines()) {
        const [times = "", ...text] = line.split(" ");
        counts[text.join(" ")] = Number(times);
      }
      return counts;
    },
    [Symbol.dispose]: () => void child.kill("SIGKILL"),
  };
}

// One line of the program after the other; rejects with what it complained of when it ends before.
function readLines(child: ChildProcessWithoutNullStreams): () => Promise<string> {
  let complaints = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => (complaints += text));
  child.stdin.on("error", (error) => (complaints += error.message));
  const iterator = createInterface(child.stdout)[Symbol.asyncIterator]();
  return async () => {
    const { done, value } = await iterator.next();
    if (done !== true) return value;
    throw new Error(`the client ended: ${complaints}`);
  };
}

/** The first argument of a program. */
export function authorityOf(host: string, { address }: Pick<TestPlantServer, "address">): string {
  return `${host}:${address.port}`;
}
