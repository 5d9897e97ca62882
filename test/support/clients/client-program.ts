import { spawn, type ChildProcessWithoutNullStreams } from "node:child_process";
import { createInterface } from "node:readline";
import { projectFolder } from "../../../protoport/testing/src/process/child-program.ts";
import { within } from "../../../protoport/testing/src/deadline.ts";
import type { TestPlantServer } from "../server/plant-server.ts";

/**
 * A program with a generated client, in any language.
 *
 * Its arguments are the server's address (`localhost:8080`) and, for TLS, the authority's certificate file. For each
 * input line `<id> <token> <deadline in ms>`, with `-` for none, deletes the plant. Then writes one line with the gRPC
 * status code and, for an error, a space and the message.
 *
 * For a line `<load> <token> <amount>`, puts a {@link Load} on the server. Then writes a line `<times> <outcome>` for
 * each outcome, followed by an empty line. Programs without streams do not accept loads with streams.
 */
export interface ClientProgram {
  /** The program and its first arguments. */
  readonly command: readonly [string, ...string[]];
  readonly folder?: string;
  readonly environment?: Readonly<Record<string, string>>;
}

/** Timeout in ms for a load, or for the first line from a program with a virtual machine, on a busy computer. */
export const responseLimitMs = 240_000;
/** Deletions by 64 callers for some seconds, a bidirectional stream, or a server stream. */
export type Load = "load" | "echo" | "count";

export interface RunningClient {
  deletePlant(id: bigint, token: string | undefined, deadlineMs?: number): Promise<string>;
  /** Resolves to each outcome's count: code and message for calls, with "#" for the plant; a message's size. */
  load(load: Load, token: string | undefined, amount: number): Promise<Readonly<Record<string, number>>>;
  [Symbol.dispose](): void;
}

export function startClient({ command, folder, environment }: ClientProgram, args: readonly string[]): RunningClient {
  const [file, ...first] = command;
  const env = { ...process.env, ...environment };
  const child = spawn(file, [...first, ...args], { cwd: folder ?? projectFolder, env });
  const lines = readLines(child);
  const send = async (what: string, token = "-", amount: number | "-" = "-"): Promise<string> => {
    child.stdin.write(`${what} ${token} ${amount}\n`);
    return await within(lines(), `a response of ${file}`, responseLimitMs);
  };
  return {
    deletePlant: (id, token, deadlineMs) => send(String(id), token, deadlineMs),
    load: async (load, token, amount) => {
      const counts: Record<string, number> = {};
      // Each line has a count and an outcome, and an empty line marks the end.
      for (let line = await send(load, token, amount); line !== ""; line = await lines()) {
        const [times = "", ...text] = line.split(" ");
        counts[text.join(" ")] = Number(times);
      }
      return counts;
    },
    [Symbol.dispose]: () => void child.kill("SIGKILL"),
  };
}

// Returns a function that reads the program's next line. Rejects with the program's errors when the program has exited.
function readLines(child: ChildProcessWithoutNullStreams): () => Promise<string> {
  let complaints = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => (complaints += text));
  child.stdin.on("error", (error) => (complaints += error.message));
  const iterator = createInterface(child.stdout)[Symbol.asyncIterator]();
  return async () => {
    const { done, value } = await iterator.next();
    if (done !== true) return value;
    throw new Error(`the client exited: ${complaints}`);
  };
}

/** Returns a program's first argument. */
export const authorityOf = (host: string, { address }: Pick<TestPlantServer, "address">): string =>
  `${host}:${address.port}`;
