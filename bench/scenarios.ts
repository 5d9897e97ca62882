import { fileURLToPath } from "node:url";
import { h2loadLoad } from "./load/h2load.ts";
import type { Load, LoadShape } from "./load/load.ts";
import { ownLoad } from "./load/own-load.ts";
import { hasTool } from "./load/tool.ts";
import { wrkLoad } from "./load/wrk.ts";
import { benchToken } from "./servers/plants.ts";

/** One load, and the servers that are compared under it. */
export interface Scenario {
  readonly name: string;
  readonly title: string;
  readonly load: Load;
  /** The first one is the floor that the others are a multiple of. */
  readonly subjects: readonly Subject[];
}

/** A server in the comparison. */
export interface Subject {
  readonly name: string;
  /** The path of its program. */
  readonly program: string;
}

/** The name under which this project's own server runs. */
export const ownName = "plantstore";

const procedure = "/plantstore.v1.PlantService/DeletePlant";
const authorization = `Bearer ${benchToken}`;

const restShape: LoadShape = {
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

const grpcShape: LoadShape = {
  httpMethod: "POST",
  path: procedure,
  header: { authorization, "content-type": "application/grpc+proto", te: "trailers" },
  // An envelope with DeletePlantRequest{id: 7}.
  body: Buffer.from([0, 0, 0, 0, 2, 8, 7]),
  connections: 8,
  streams: 32,
};

const http1Load = hasTool("wrk") ? wrkLoad : ownLoad;
const http2Load = hasTool("h2load") ? h2loadLoad : ownLoad;

/** Everything that is compared. */
export const scenarios: readonly Scenario[] = [
  {
    name: "rest",
    title: "DELETE /plants/7 over HTTP/1.1, 64 connections",
    load: http1Load(restShape),
    subjects: [server("node:http", "node-http"), server(ownName, "plantstore")],
  },
  {
    name: "connect",
    title: "DeletePlant as Connect JSON over HTTP/1.1, 64 connections",
    load: http1Load(connectShape),
    subjects: [server("node:http", "node-http"), server(ownName, "plantstore")],
  },
  {
    name: "grpc",
    title: "DeletePlant as gRPC over h2c, 8 connections of 32 streams",
    load: http2Load(grpcShape),
    subjects: [server("node:http2", "node-http2"), server(ownName, "plantstore")],
  },
];

function server(name: string, file: string): Subject {
  return { name, program: fileURLToPath(new URL(`servers/${file}.ts`, import.meta.url)) };
}
