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
  return await startNode(pinned(serverCore, nodeCommand(program, environment)), environment);
}

/** Starts a server program on node, on the load's core, as the server in a scenario that measures clients. */
export function startOnLoadCore(program: string): Promise<RunningServer> {
  return startNode(pinned(loadCore, nodeCommand(program)), {});
}

function nodeCommand(program: string, environment: NodeJS.ProcessEnv = {}): [string, ...string[]] {
  const flags = environment["NODE_FLAGS"]?.split(" ") ?? [];
  return [process.execPath, "--expose-gc", ...flags, program];
}

function startNode(
  [file, ...args]: readonly [string, ...string[]],
  environment: NodeJS.ProcessEnv,
): Promise<RunningServer> {
  return whenListening(
    spawn(file, args, {
      env: { ...process.env, NODE_ENV: "production", ...environment },
      stdio: ["ignore", "inherit", "inherit", "ipc"],
    }),
  );
}

async function whenListening(child: ChildProcess): Promise<RunningServer> {
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
