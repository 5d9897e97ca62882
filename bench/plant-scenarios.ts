import { ownLoggedName, ownName, ownSqliteName } from "./figures.ts";
import type { LoadShape } from "../protoport/bench/load/load.ts";
import { nativePeers } from "./native-peers.ts";
import { grpcProbe, http1Probe } from "../protoport/bench/probe.ts";
import {
  http1Load,
  http2Load,
  installedPeers,
  type Scenario,
  server,
  type Subject,
} from "../protoport/bench/scenarios.ts";
import { benchToken } from "./servers/plants.ts";

const folder = import.meta.dirname;

const procedure = "/plantstore.v1.PlantService/DeletePlant";
const authorization = `Bearer ${benchToken}`;

/** The request in the scenario "rest". */
export const restShape: LoadShape = {
  httpMethod: "DELETE",
  path: "/plants/7",
  header: { authorization },
  body: undefined,
  connections: 64,
  streams: 1,
};

const connectShape: LoadShape = {
  httpMethod: "POST",
  path: procedure,
  header: { authorization, "content-type": "application/json", "connect-protocol-version": "1" },
  body: Buffer.from('{"id":"7"}'),
  connections: 64,
  streams: 1,
};

const tool = "plantstore_v1_PlantService_DeletePlant";
const revision = "2026-07-28";

/** A tool call, as clients in the stateless MCP revision send it. */
const toolShape: LoadShape = {
  ...connectShape,
  path: "/mcp",
  header: {
    authorization,
    "content-type": "application/json",
    accept: "application/json, text/event-stream",
    "mcp-protocol-version": revision,
    "mcp-method": "tools/call",
    "mcp-name": tool,
  },
  body: Buffer.from(
    JSON.stringify({
      jsonrpc: "2.0",
      id: 1,
      method: "tools/call",
      params: {
        name: tool,
        arguments: { id: "7" },
        _meta: {
          "io.modelcontextprotocol/protocolVersion": revision,
          "io.modelcontextprotocol/clientInfo": { name: "bench", version: "1" },
          "io.modelcontextprotocol/clientCapabilities": {},
        },
      },
    }),
  ),
};

/** The request in the scenario "grpc". */
export const grpcShape: LoadShape = {
  httpMethod: "POST",
  path: procedure,
  header: { authorization, "content-type": "application/grpc+proto", te: "trailers" },
  // An envelope with DeletePlantRequest{id: 7}.
  body: Buffer.from([0, 0, 0, 0, 2, 8, 7]),
  connections: 8,
  streams: 32,
};

const grpcShape8By8: LoadShape = { ...grpcShape, streams: 8 };
const grpcShape64By1: LoadShape = { ...grpcShape, connections: 64, streams: 1 };

/** The floor for HTTP/1.1. */
export const nodeHttp: Subject = server("node:http", "servers/node-http");
const nodeNet = server("node:net", "servers/net");
/** The floor for HTTP/2. */
export const nodeHttp2: Subject = server("node:http2", "servers/node-http2");
/** The plant store with a store in memory. */
/** The flags of node in the container image. */
const imageFlags = { NODE_FLAGS: "--no-allocation-site-pretenuring" };

export const own: Subject = plantServer(ownName, "servers/plantstore", imageFlags);
const ownOnSqlite = plantServer(ownSqliteName, "servers/plantstore-sqlite", imageFlags);
const ownWithLog = plantServer(ownLoggedName, "servers/plantstore-sqlite", { ...imageFlags, LOG: "on" });
export const grpcJs: Subject = plantServer("grpc-js", "servers/grpc-js");

const buildable = nativePeers.filter(({ canBuild }) => canBuild);
const unbuildable = nativePeers.filter(({ canBuild }) => !canBuild);

/** Returns the servers in other languages that can be built here. */
export function nativeSubjects(protocol: "grpc" | "rest"): Subject[] {
  // Go and Rust have a single thread, because more threads would only compete for the server's only core.
  const environment = { BENCH_TOKEN: benchToken, BENCH_PROTOCOL: protocol, GOMAXPROCS: "1" };
  return buildable.map(({ [protocol]: name, program, build }) => ({ name, program, build, environment }));
}

function absentSubjects(protocol: "grpc" | "rest"): string[] {
  return unbuildable.map(({ [protocol]: name, compiler }) => `${name} is not measured: ${compiler} is not on PATH`);
}

/** The scenarios in which DeletePlant is compared. Peers need `npm ci --prefix bench/peers` or a compiler. */
export const plantScenarios: readonly Scenario[] = [
  {
    name: "rest",
    title: "DELETE /plants/7 over HTTP/1.1, 64 connections",
    shape: restShape,
    load: http1Load(restShape),
    probe: http1Probe(restShape),
    subjects: [
      nodeHttp,
      nodeNet,
      own,
      ownOnSqlite,
      ownWithLog,
      ...installedPeers(["fastify", "hono", "express"], folder),
      ...nativeSubjects("rest"),
    ],
    absent: absentSubjects("rest"),
  },
  {
    name: "connect",
    title: "DeletePlant as Connect JSON over HTTP/1.1, 64 connections",
    shape: connectShape,
    load: http1Load(connectShape),
    probe: http1Probe(connectShape),
    subjects: [nodeHttp, nodeNet, own, plantServer("connect-node", "servers/connect-node", { HTTP_VERSION: "1.1" })],
  },
  {
    name: "mcp",
    title: "DeletePlant as a tool of MCP over HTTP/1.1, 64 connections; the floor is the same call as Connect JSON",
    shape: toolShape,
    load: http1Load(toolShape),
    probe: http1Probe(toolShape),
    subjects: [
      { ...own, name: "plantstore, Connect JSON", shape: connectShape },
      plantServer(ownName, "servers/plantstore", { TOOLS: "on" }),
      ...installedPeers(["mcp-typescript-sdk"], folder),
    ],
  },
  {
    name: "grpc",
    title: "DeletePlant as gRPC over h2c, 8 connections of 32 streams",
    shape: grpcShape,
    load: http2Load(grpcShape),
    probe: grpcProbe(grpcShape),
    subjects: [
      nodeHttp2,
      own,
      grpcJs,
      plantServer("connect-node", "servers/connect-node", { HTTP_VERSION: "2" }),
      ...nativeSubjects("grpc"),
    ],
    absent: absentSubjects("grpc"),
  },
  // With fewer streams on each connection, fewer gRPC responses share a write.
  ...[grpcShape8By8, grpcShape64By1].map((shape) => ({
    name: `grpc-${String(shape.connections)}x${String(shape.streams)}`,
    title: `The same, ${String(shape.connections)} connections with ${String(shape.streams)} streams each`,
    shape,
    load: http2Load(shape),
    probe: grpcProbe(shape),
    subjects: [nodeHttp2, own, grpcJs, ...nativeSubjects("grpc")],
    absent: absentSubjects("grpc"),
  })),
];

/**
 * Returns the scenario with only this project's server. The server runs without telemetry, with metrics, with traces at
 * 1 %, and with both.
 */
export function watched({ subjects, ...scenario }: Scenario): Scenario {
  return {
    ...scenario,
    subjects: subjects.flatMap((subject) =>
      subject.name === ownName
        ? [
            subject,
            { ...subject, name: `${ownName} with metrics`, environment: { METRICS: "on" } },
            { ...subject, name: `${ownName} with traces`, environment: { TRACES: "on" } },
            { ...subject, name: `${ownName} with both`, environment: { METRICS: "on", TRACES: "on" } },
          ]
        : [],
    ),
    absent: [],
  };
}

function plantServer(name: string, path: string, environment: NodeJS.ProcessEnv = {}): Subject {
  return server(name, path, environment, folder);
}
