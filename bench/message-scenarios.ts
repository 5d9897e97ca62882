import { BytesValueSchema, UInt32ValueSchema } from "@bufbuild/protobuf/wkt";
import { create, toBinary } from "@bufbuild/protobuf";
import type { LoadShape } from "./load/load.ts";
import { grpcProbe } from "./probe.ts";
import { http2Load, ownName, server, type Scenario, type Subject } from "./scenarios.ts";
import { countPath, echoPath } from "./servers/echo-service.ts";

const KiB = 1_024;
const MiB = 1_024 * KiB;

/** Messages of a stream that is long: what a call costs once is lost in them. */
const streamedMessages = 10_000;

const subjects: readonly Subject[] = [
  server("node:http2", "servers/echo-node-http2"),
  server(ownName, "servers/echo"),
  server(`${ownName} on node:http2`, "servers/echo", { HTTP2_ENGINE: "node" }),
  server("connect-node", "servers/echo-connect-node"),
];

/** What messages cost rather than calls: a service that sends back what it gets, and one that sends many. */
export const messageScenarios: readonly Scenario[] = [
  scenario("grpc-64k", "64 KiB both ways as unary gRPC, 8 connections with 4 open at once", echo(64 * KiB, 8, 4)),
  scenario("grpc-1m", "1 MiB both ways as unary gRPC, 4 connections with 2 open at once", echo(MiB, 4, 2)),
  scenario("grpc-stream", "10,000 messages as one server stream of gRPC, 4 connections with 2 open at once", {
    ...shape(countPath, toBinary(UInt32ValueSchema, create(UInt32ValueSchema, { value: streamedMessages }))),
    connections: 4,
    streams: 2,
  }),
];

function echo(bytes: number, connections: number, streams: number): LoadShape {
  const message = create(BytesValueSchema, { value: Buffer.alloc(bytes, "x") });
  return { ...shape(echoPath, toBinary(BytesValueSchema, message)), connections, streams };
}

function shape(path: string, message: Uint8Array): Omit<LoadShape, "connections" | "streams"> {
  const envelope = Buffer.alloc(5);
  envelope.writeUInt32BE(message.byteLength, 1);
  const header = { "content-type": "application/grpc+proto", te: "trailers" };
  return { httpMethod: "POST", path, header, body: Buffer.concat([envelope, message]) };
}

function scenario(name: string, title: string, load: LoadShape): Scenario {
  return { name, title, load: http2Load(load), probe: grpcProbe(load), subjects };
}
