import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { pinned, serverCore } from "./cores.ts";

/** What the driver asks a server program; `settle` collects garbage before it looks. */
export interface Request {
  readonly kind: "usage" | "settle";
}

/** What a server program says. */
export type Reply = { readonly kind: "listening"; readonly port: number } | ({ readonly kind: "usage" } & Usage);

/** What a server has used since it started. */
export interface Usage {
  /** User and system time of all its threads. */
  readonly cpuUs: number;
  readonly rssBytes: number;
}

/** A server program that runs on the server's core and listens on loopback. */
export interface ServerProcess {
  readonly port: number;
  usage(): Promise<Usage>;
  /** The usage after a garbage collection. */
  settle(): Promise<Usage>;
  stop(): Promise<void>;
}

/** A server that neither listens nor answers by then is not going to, in ms. */
const replyLimitMs = 30_000;

/** Starts a server program and waits until it listens. Rejects when it ends first. */
export async function startServer(program: string, environment: NodeJS.ProcessEnv = {}): Promise<ServerProcess> {
  const [file, ...args] = pinned(serverCore, [process.execPath, "--expose-gc", program]);
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

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill("SIGKILL");
  await once(child, "exit");
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
