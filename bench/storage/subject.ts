import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { Agent, get } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { type Percentiles, percentilesOf } from "../../protoport/bench/load/load.ts";
import { runTool } from "../../protoport/bench/load/tool.ts";
import { nextMessage } from "../../protoport/bench/running-server.ts";
import type { GrpcClientOptions, GrpcResult } from "./grpc-client.ts";
import { deleteRandomPlants, type RestResult } from "./load.ts";
import type { ServerMessage } from "./server.ts";
import type { StoreLocation, StoreName } from "./stores.ts";

/** A server's result under one load. */
export interface Measurement extends RestResult {
  /** CPU time in the thread that serves requests, per request, in µs. */
  readonly mainUsPerRequest: number;
  /** The CPU time in all server threads, without the database's processes. */
  readonly allUsPerRequest: number;
  /** Latency of an unrelated request during the load, in µs. */
  readonly pingUs: Percentiles;
}

/** Runs a server with this store and measures REST at each number of connections, one after the other. */
export async function measureRest(
  name: StoreName,
  location: StoreLocation,
  connections: readonly number[],
  seconds: number,
): Promise<Measurement[]> {
  await using server = await startServer(name, location);
  await deleteRandomPlants(server.port, 32, 1, location.plants);
  const measured = [];
  for (const count of connections) measured.push(await measureLoad(server, count, seconds, location.plants));
  return measured;
}

/** Runs a server with this store and deletes each plant once over gRPC, with 256 concurrent calls. */
export async function measureGrpc(name: StoreName, location: StoreLocation, seconds: number): Promise<GrpcResult> {
  await using server = await startServer(name, location);
  const options: GrpcClientOptions = {
    port: server.port,
    connections: 8,
    streams: 32,
    durationS: seconds,
    plants: location.plants,
  };
  return JSON.parse(await runTool([process.execPath, pathOf("grpc-client.ts"), JSON.stringify(options)], seconds));
}

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

async function measureLoad(
  server: SubjectServer,
  connections: number,
  seconds: number,
  plants: number,
): Promise<Measurement> {
  const { port } = server;
  const before = await server.usage();
  const loadEnd = new AbortController();
  const pinging = ping(port, loadEnd.signal);
  const result = await deleteRandomPlants(port, connections, seconds, plants);
  loadEnd.abort();
  const pingUs = await pinging;
  const after = await server.usage();
  return {
    ...result,
    pingUs,
    mainUsPerRequest: (after.mainUs - before.mainUs) / result.requests,
    allUsPerRequest: (after.allUs - before.allUs) / result.requests,
  };
}

// Pause between two unrelated requests, in ms. A few hundred requests per second are a negligible load.
const pingIntervalMs = 3;

async function ping(port: number, loadEnd: AbortSignal): Promise<Percentiles> {
  const agent = new Agent({ keepAlive: true });
  const latencies: number[] = [];
  while (!loadEnd.aborted) {
    const startedMs = performance.now();
    const [response] = await once(get({ agent, port, host: "127.0.0.1", path: "/livez" }), "response");
    await once(response.resume(), "end");
    latencies.push((performance.now() - startedMs) * 1_000);
    await sleep(pingIntervalMs);
  }
  agent.destroy();
  return percentilesOf(Float64Array.from(latencies));
}

type Usage = Extract<ServerMessage, { kind: "usage" }>;

async function usageOf(child: ChildProcess): Promise<Usage> {
  child.send("usage");
  return await nextMessage<Usage>(child, "usage");
}
