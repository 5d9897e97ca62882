import { BytesValueSchema, UInt32ValueSchema } from "@bufbuild/protobuf/wkt";
import { create, toBinary } from "@bufbuild/protobuf";
import { ownHandlersName, ownName } from "./figures.ts";
import type { LoadShape } from "./load/load.ts";
import { grpcProbe, http1Probe, http2Probe } from "./probe.ts";
import { http1Load, http2Load, server, type Scenario, type Subject } from "./scenarios.ts";
import { collectPath, countPath, echoPath, streamedBytes, uploadPath } from "./servers/echo-service.ts";

const KiB = 1_024;
const MiB = 1_024 * KiB;

/** Number of messages in a stream whose fixed cost matters. */
const fewMessages = 100;

/** Number of messages in a stream whose fixed cost is negligible. */
const streamedMessages = 10_000;

const subjects: readonly Subject[] = [
  server("node:http2", "servers/echo-node-http2"),
  server(ownName, "servers/echo"),
  server("connect-node", "servers/echo-connect-node"),
];

const own = server(ownName, "servers/echo");
const connectNode = server("connect-node", "servers/echo-connect-node");
const line = `"${Buffer.alloc(streamedBytes, "x").toString("base64")}"`;
const fourByTwo = { connections: 4, streams: 2 };
const connectHeader = { "content-type": "application/connect+json", "connect-protocol-version": "1" };

const largeOverHttp1: LoadShape = {
  httpMethod: "POST",
  path: echoPath,
  header: { "content-type": "application/proto", "connect-protocol-version": "1" },
  body: Buffer.from(toBinary(BytesValueSchema, create(BytesValueSchema, { value: Buffer.alloc(MiB, "x") }))),
  connections: 8,
  streams: 1,
};

const upload: LoadShape = {
  httpMethod: "POST",
  path: uploadPath,
  header: { "content-type": "application/octet-stream" },
  body: Buffer.alloc(16 * MiB, "x"),
  connections: 4,
  streams: 1,
};

const smallUpload: LoadShape = { ...upload, body: Buffer.alloc(MiB, "x"), connections: 16 };

/** Streams of equal messages, in both directions, over REST and over the Connect protocol in JSON. */
const jsonStreams: readonly (Pick<Scenario, "name" | "title" | "subjects"> & { readonly shape: LoadShape })[] = [
  {
    name: "rest-stream",
    title: "lines of JSON from the server over REST",
    shape: { ...fourByTwo, httpMethod: "GET", path: `/count/${streamedMessages}`, header: {}, body: undefined },
    subjects: [own],
  },
  {
    name: "connect-stream",
    title: "one server stream of Connect in JSON",
    shape: {
      ...fourByTwo,
      httpMethod: "POST",
      path: countPath,
      header: connectHeader,
      body: envelope(`${streamedMessages}`),
    },
    subjects: [own, connectNode],
  },
  {
    name: "rest-lines",
    title: "lines of JSON from the client over REST",
    shape: {
      ...fourByTwo,
      httpMethod: "POST",
      path: "/collect",
      header: { "content-type": "application/x-ndjson" },
      body: Buffer.from(`${line}\n`.repeat(streamedMessages)),
    },
    subjects: [own],
  },
  {
    name: "connect-lines",
    title: "one stream of the client of Connect in JSON",
    shape: {
      ...fourByTwo,
      httpMethod: "POST",
      path: collectPath,
      header: connectHeader,
      body: Buffer.concat(Array.from({ length: streamedMessages }, () => envelope(line))),
    },
    subjects: [own, connectNode],
  },
];

/** Scenarios in which messages dominate the cost, because large messages are echoed, or streams have many messages. */
export const messageScenarios: readonly Scenario[] = [
  scenario("grpc-64k", "64 KiB both ways as unary gRPC, 8 connections of 4 streams", echo(64 * KiB, 8, 4)),
  scenario("grpc-1m", "1 MiB both ways as unary gRPC, 4 connections of 2 streams", echo(MiB, 4, 2)),
  {
    name: "connect-1m",
    title: "1 MiB both ways as unary Connect over HTTP/1.1, 8 connections",
    shape: largeOverHttp1,
    load: http1Load(largeOverHttp1),
    probe: http1Probe(largeOverHttp1),
    subjects: [
      server("node:http", "servers/echo-node-http"),
      server("node:http, protobuf-es", "servers/echo-node-http", { ECHO_MESSAGES: "protobuf-es" }),
      own,
    ],
  },
  {
    name: "upload",
    title: "16 MiB as a stream of google.api.HttpBody over REST and HTTP/1.1, 4 connections",
    shape: upload,
    load: http1Load(upload),
    probe: http1Probe(upload),
    subjects: [server("node:http", "servers/echo-node-http"), own],
  },
  {
    name: "upload-1m",
    title: "1 MiB as a stream of google.api.HttpBody over REST and HTTP/1.1, 16 connections",
    shape: smallUpload,
    load: http1Load(smallUpload),
    probe: http1Probe(smallUpload),
    subjects: [server("node:http", "servers/echo-node-http"), own],
  },
  {
    ...scenario("grpc-stream-100", "100 messages as one server stream of gRPC, 8 connections of 8 streams", {
      ...shape(countPath, toBinary(UInt32ValueSchema, create(UInt32ValueSchema, { value: fewMessages }))),
      connections: 8,
      streams: 8,
    }),
    subjects: [
      ...subjects,
      server(ownHandlersName, "peers/echo-handlers-gateway"),
      server("grpc-js", "peers/echo-grpc-js"),
    ],
  },
  scenario("grpc-stream", "10,000 messages as one server stream of gRPC, 4 connections of 2 streams", {
    ...shape(countPath, toBinary(UInt32ValueSchema, create(UInt32ValueSchema, { value: streamedMessages }))),
    connections: 4,
    streams: 2,
  }),
  ...jsonStreams.map(({ name, title, shape: load, subjects: compared }) => ({
    name,
    title: `10,000 messages as ${title}, 4 connections of 2 streams`,
    shape: load,
    load: http2Load(load),
    probe: http2Probe(load),
    subjects: compared,
  })),
];

function echo(bytes: number, connections: number, streams: number): LoadShape {
  const message = create(BytesValueSchema, { value: Buffer.alloc(bytes, "x") });
  return { ...shape(echoPath, toBinary(BytesValueSchema, message)), connections, streams };
}

function shape(path: string, message: Uint8Array): Omit<LoadShape, "connections" | "streams"> {
  const header = { "content-type": "application/grpc+proto", te: "trailers" };
  return { httpMethod: "POST", path, header, body: envelope(message) };
}

function envelope(message: Uint8Array | string): Buffer {
  const bytes = Buffer.from(message);
  const prefix = Buffer.alloc(5);
  prefix.writeUInt32BE(bytes.byteLength, 1);
  return Buffer.concat([prefix, bytes]);
}

function scenario(name: string, title: string, load: LoadShape): Scenario {
  return { name, title, shape: load, load: http2Load(load), probe: grpcProbe(load), subjects };
}
