import { spawn, type ChildProcess } from "node:child_process";
import { extname } from "node:path";
import { pinned, serverCore } from "./cores.ts";
import { startNativeServer } from "./native-process.ts";
import { replyLimitMs, stop, type RunningServer, type Usage } from "./running-server.ts";

/** What the driver asks a server program; `settle` collects garbage before it looks. */
export interface Request {
  readonly kind: "usage" | "settle";
}

/** What a server program says. */
export type Reply = { readonly kind: "listening"; readonly port: number } | ({ readonly kind: "usage" } & Usage);

/**
 * Starts a server program on the server's core and waits until it listens: one in JavaScript or TypeScript on node, any
 * other by itself. Rejects when it ends first.
 */
export async function startServer(program: string, environment: NodeJS.ProcessEnv = {}): Promise<RunningServer> {
  if (![".js", ".ts"].includes(extname(program))) return await startNativeServer(program, environment);
  return await startNode(pinned(serverCore, nodeCommand(program)), program, environment);
}

/** Starts a server program of node's on whatever core. */
export function startAnywhere(program: string, environment: NodeJS.ProcessEnv = {}): Promise<RunningServer> {
  return startNode(nodeCommand(program), program, environment);
}

function nodeCommand(program: string): [string, ...string[]] {
  return [process.execPath, "--expose-gc", program];
}

async function startNode(
  [file, ...args]: readonly [string, ...string[]],
  program: string,
  environment: NodeJS.ProcessEnv,
): Promise<RunningServer> {
  const child = spawn(file, args, {
    env: { ...process.env, NODE_ENV: "production", ...environment },
    stdio: ["ignore", "inherit", "inherit", "ipc"],
  });
  const listening = await nextReply(child, program);
  if (listening.kind !== "listening") throw new Error(`${program} spoke before it listened`);
  const ask = async (request: Request): Promise<Usage> => {
    child.send(request);
    const answer = await nextReply(child, program);
    if (answer.kind !== "usage") throw new Error(`${program} did not tell its usage`);
    return answer;
  };
  return {
    port: listening.port,
    usage: () => ask({ kind: "usage" }),
    settle: () => ask({ kind: "settle" }),
    stop: () => stop(child),
  };
}

function nextReply(child: ChildProcess, program: string): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const settle = (reply: Reply | Error): void => {
      clearTimeout(limit);
      child.off("message", settle).off("exit", fail);
      if (reply instanceof Error) reject(reply);
      else resolve(reply);
    };
    const fail = (): void => settle(new Error(`${program} ended, or said nothing for ${String(replyLimitMs)} ms`));
    const limit = setTimeout(fail, replyLimitMs);
    child.on("message", settle).on("exit", fail);
  });
}
