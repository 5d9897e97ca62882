import { type ChildProcess, spawn } from "node:child_process";
import { extname } from "node:path";
import { loadCore, pinned, serverCore } from "./cores.ts";
import { startNativeServer } from "./native-process.ts";
import { nextMessage, stop, type RunningServer, type Usage } from "./running-server.ts";

/** The driver's request to a server program. `settle` collects garbage before it reports the usage. */
export interface Request {
  readonly kind: "usage" | "settle";
}

/** A server program's message. */
export type Reply = { readonly kind: "listening"; readonly port: number } | ({ readonly kind: "usage" } & Usage);

/**
 * Starts a server program on the server's core and waits until it listens. JavaScript and TypeScript programs run on
 * node. Rejects if the program exits first.
 */
export async function startServer(program: string, environment: NodeJS.ProcessEnv = {}): Promise<RunningServer> {
  if (![".js", ".ts"].includes(extname(program))) return await startNativeServer(program, environment);
  return await startNode(pinned(serverCore, nodeCommand(program)), program, environment);
}

/** Starts a server program on node, on the load's core, as the server in a scenario that measures clients. */
export function startOnLoadCore(program: string): Promise<RunningServer> {
  return startNode(pinned(loadCore, nodeCommand(program)), program, {});
}

/**
 * Starts a server program on node, without pinning it to a core. `onStart` gets the process before the server listens.
 */
export function startAnywhere(
  program: string,
  environment: NodeJS.ProcessEnv,
  onStart: (child: ChildProcess) => void,
): Promise<RunningServer> {
  return startNode(nodeCommand(program), program, environment, onStart);
}

function nodeCommand(program: string): [string, ...string[]] {
  return [process.execPath, "--expose-gc", program];
}

async function startNode(
  [file, ...args]: readonly [string, ...string[]],
  program: string,
  environment: NodeJS.ProcessEnv,
  onStart: (child: ChildProcess) => void = () => undefined,
): Promise<RunningServer> {
  const child = spawn(file, args, {
    env: { ...process.env, NODE_ENV: "production", ...environment },
    stdio: ["ignore", "inherit", "inherit", "ipc"],
  });
  onStart(child);
  const { port } = await nextMessage<Extract<Reply, { kind: "listening" }>>(child, "listening");
  const send = async (request: Request): Promise<Usage> => {
    child.send(request);
    return await nextMessage<Extract<Reply, { kind: "usage" }>>(child, "usage");
  };
  return {
    port,
    usage: () => send({ kind: "usage" }),
    settle: () => send({ kind: "settle" }),
    stop: () => stop(child),
  };
}
