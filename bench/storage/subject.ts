import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { Agent, get } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { type Percentiles, percentilesOf } from "../load/load.ts";
import { runTool } from "../load/tool.ts";
import { plantStoreFlags } from "../plant-store-flags.ts";
import { nextMessage } from "../running-server.ts";
import type { GrpcOrder, GrpcSeen } from "./grpc-client.ts";
import { deleteRandomPlants, type RestResult } from "./load.ts";
import type { Said } from "./server.ts";
import type { Place, StoreName } from "./stores.ts";

/** What a server showed under one load. */
export interface Measurement extends RestResult {
  /** CPU time of the thread that serves requests, per request, in µs. */
  readonly mainUsPerRequest: number;
  /** The same of all threads of the server, without the database's processes. */
  readonly allUsPerRequest: number;
  /** An unrelated request beside the load, in µs. */
  readonly pingUs: Percentiles;
}

/** Runs a server with this store and measures REST at each number of connections, one after the other. */
export async function measureRest(
  name: StoreName,
  place: Place,
  connections: readonly number[],
  seconds: number,
): Promise<Measurement[]> {
  await using server = await startServer(name, place);
  await deleteRandomPlants(server.port, 32, 1, place.plants);
  const measured = [];
  for (const count of connections) measured.push(await measureLoad(server, count, seconds, place.plants));
  return measured;
}

/** Runs a server with this store and deletes each plant once over gRPC, with 256 calls at a time. */
export async function measureGrpc(name: StoreName, place: Place, seconds: number): Promise<GrpcSeen> {
  await using server = await startServer(name, place);
  const order: GrpcOrder = {
    port: server.port,
    connections: 8,
    streams: 32,
    durationS: seconds,
    plants: place.plants,
  };
  return JSON.parse(await runTool([process.execPath, pathOf("grpc-client.ts"), JSON.stringify(order)], seconds));
}

/** What a store without a server has done. */
export interface Alone {
  readonly perS: number;
  readonly latencyUs: Percentiles;
}

/** Deletes with 256 callers from a store without a server. */
export async function measureAlone(name: StoreName, place: Place, seconds: number): Promise<Alone> {
  const args = [...plantStoreFlags, pathOf("store-alone.ts"), name, JSON.stringify(place), "256", String(seconds)];
  return JSON.parse(await runTool([process.execPath, ...args], seconds));
}

/** A server with a store, in a process of its own. Dispose of it with `await using`. */
export interface SubjectServer {
  readonly port: number;
  /** CPU time that it has used, in µs. */
  usage(): Promise<Usage>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** Starts a server with this store. */
export async function startServer(name: StoreName, place: Place): Promise<SubjectServer> {
  // On no core of its own: a storage thread, like a database, is there to use another one.
  const child = spawn(process.execPath, [...plantStoreFlags, pathOf("server.ts"), name, JSON.stringify(place)], {
    env: { ...process.env, NODE_ENV: "production" },
    stdio: ["ignore", "inherit", "inherit", "ipc"],
  });
  // It ends with this process whatever happens here, since then its channel is gone.
  const { port } = await nextMessage<Extract<Said, { kind: "listening" }>>(child, "listening");
  return {
    port,
    usage: () => usageOf(child),
    [Symbol.asyncDispose]: async () => {
      const ended = once(child, "exit");
      if (child.exitCode === null && child.kill("SIGKILL")) await ended;
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
  const over = new AbortController();
  const pinging = ping(port, over.signal);
  const result = await deleteRandomPlants(port, connections, seconds, plants);
  over.abort();
  const pingUs = await pinging;
  const after = await server.usage();
  return {
    ...result,
    pingUs,
    mainUsPerRequest: (after.mainUs - before.mainUs) / result.requests,
    allUsPerRequest: (after.allUs - before.allUs) / result.requests,
  };
}

// Milliseconds between two of the unrelated requests: a few hundred in a second, and no load of their own.
const pingIntervalMs = 3;

async function ping(port: number, over: AbortSignal): Promise<Percentiles> {
  const agent = new Agent({ keepAlive: true });
  const latencies: number[] = [];
  while (!over.aborted) {
    const startedMs = performance.now();
    const [response] = await once(get({ agent, port, host: "127.0.0.1", path: "/livez" }), "response");
    await once(response.resume(), "end");
    latencies.push((performance.now() - startedMs) * 1_000);
    await sleep(pingIntervalMs);
  }
  agent.destroy();
  return percentilesOf(Float64Array.from(latencies));
}

type Usage = Extract<Said, { kind: "usage" }>;

async function usageOf(child: ChildProcess): Promise<Usage> {
  child.send("usage");
  return await nextMessage<Usage>(child, "usage");
}
