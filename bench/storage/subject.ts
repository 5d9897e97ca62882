import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { Percentiles } from "../../protoport/bench/load/load.ts";
import { runTool } from "../../protoport/bench/load/tool.ts";
import { nextMessage } from "../../protoport/bench/running-server.ts";
import type { ServerMessage } from "./server.ts";
import type { StoreLocation, StoreName } from "./stores.ts";

/** A store's result without a server. */
export interface Alone {
  readonly perS: number;
  readonly latencyUs: Percentiles;
}

/** Deletes plants with 256 callers from a store without a server. */
export async function measureAlone(name: StoreName, location: StoreLocation, seconds: number): Promise<Alone> {
  const args = [pathOf("store-alone.ts"), name, JSON.stringify(location), "256", String(seconds)];
  return JSON.parse(await runTool([process.execPath, ...args], seconds));
}

/** A server with a store, in a separate process. Dispose of the server with `await using`. */
export interface SubjectServer {
  readonly port: number;
  /** Returns the server's CPU time, in µs. */
  usage(): Promise<Usage>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** Starts a server with this store. */
export async function startServer(name: StoreName, location: StoreLocation): Promise<SubjectServer> {
  // The server is not pinned to a core, because storage threads and databases use other cores.
  const child = spawn(process.execPath, [pathOf("server.ts"), name, JSON.stringify(location)], {
    env: { ...process.env, NODE_ENV: "production" },
    stdio: ["ignore", "inherit", "inherit", "ipc"],
  });
  // The server exits with this process in any case, because its channel then closes.
  const { port } = await nextMessage<Extract<ServerMessage, { kind: "listening" }>>(child, "listening");
  return {
    port,
    usage: () => usageOf(child),
    [Symbol.asyncDispose]: async () => {
      const exited = once(child, "exit");
      if (child.exitCode === null && child.kill("SIGKILL")) await exited;
    },
  };
}

function pathOf(program: string): string {
  return fileURLToPath(new URL(program, import.meta.url));
}

type Usage = Extract<ServerMessage, { kind: "usage" }>;

async function usageOf(child: ChildProcess): Promise<Usage> {
  child.send("usage");
  return await nextMessage<Usage>(child, "usage");
}
