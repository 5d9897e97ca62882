import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
// oxfmt-ignore
import { type Address, buildLimitMs, createIssuedCertificate, createTempFolder, createTestGateway
} from "@protoport/testing";
import { openMemoryStore } from "../../../src/stores/index.ts";
import { StreamService } from "../../../protoport/testing/src/gen/streams/v1/stream_service_pb.ts";
import { responseLimitMs, authorityOf, type ClientProgram, startClient } from "../../support/clients/client-program.ts";
import { recipeFolder } from "../../support/clients/client-recipe.ts";
// oxfmt-ignore
import { buildGoClient, buildJavaClient, buildPythonClient, buildRustClient
} from "../../support/clients/built-clients.ts";
import { startPlantServer, type TestPlantServerOptions, tokens } from "../../support/server/plant-server.ts";

// Clients with their default options under full load, where clients behave differently than for single calls. For
// example, clients measure the bandwidth, or send as much as the flow-control windows allow.

type Row = { readonly name: string; readonly build: () => Promise<ClientProgram> };

const typescript = async (program: string): Promise<ClientProgram> => ({
  command: [process.execPath, join(recipeFolder("typescript"), program)],
});

const clients: readonly Row[] = [
  { name: "grpc-go", build: () => buildGoClient("grpc-go") },
  {
    name: "connect-go",
    build: async () => ({ ...(await buildGoClient("connect-go")), environment: { HTTP2: "yes" } }),
  },
  { name: "grpc-java", build: () => buildJavaClient() },
  { name: "grpcio", build: () => buildPythonClient("grpcio_client.py") },
  { name: "tonic", build: () => buildRustClient() },
  { name: "grpc-js", build: () => typescript("proto-loader.ts") },
  { name: "connect-node", build: () => typescript("connect-node.ts") },
];

/** More plants than any client deletes. */
const plantCount = 500_000;
const callSeconds = 2;
type StreamSize = { readonly pieces: number; readonly bytes: number };
/** Bytes of content in each counted message. */
const countedBytes = 16;

const echoed: StreamSize = { pieces: 1000, bytes: 64 * 1024 };
const counted: StreamSize = { pieces: 10_000, bytes: countedBytes };

/** Returns what a client counts for a complete stream without an error. */
function completeStream({ pieces, bytes }: StreamSize): Readonly<Record<string, number>> {
  return { [`${bytes} bytes`]: pieces, "0": 1 };
}

describe.each(clients)("$name", { timeout: responseLimitMs }, ({ build }) => {
  let program: ClientProgram;
  beforeAll(async () => void (program = await build()), buildLimitMs);

  test("gets the right response to each call on one connection", () => callFor({}, program));

  test("gets the right response to each call on one TLS connection", async () => {
    using folder = createTempFolder();
    const authorityFile = folder.file("authority.pem");
    const tls = createIssuedCertificate("localhost");
    writeFileSync(authorityFile, tls.authority);
    await callFor({ tls }, program, authorityFile);
  });

  test("sends and receives complete long streams on one connection", async () => {
    await using server = await startStreamServer();
    using connections = countConnections();
    using client = startClient(program, [authorityOf("localhost", server)]);
    expect(await client.load("echo", undefined, echoed.pieces)).toEqual(completeStream(echoed));
    expect(await client.load("count", undefined, counted.pieces)).toEqual(completeStream(counted));
    expect(connections.count).toBe(1);
  });
});

/** Lets a client delete plants 1, 2, 3 …, every second of which exists, and compares the responses with the store. */
async function callFor(options: TestPlantServerOptions, program: ClientProgram, ...trusted: readonly string[]) {
  const plants = new Set(Array.from({ length: plantCount }, (_, i) => BigInt(2 * i + 2)));
  await using server = await startPlantServer({ store: openMemoryStore(plants), ...options });
  using connections = countConnections();
  using client = startClient(program, [authorityOf("localhost", server), ...trusted]);
  const outcomes = await client.load("load", tokens.good, callSeconds);
  const calls = Object.values(outcomes).reduce((sum, times) => sum + times, 0);
  const deleted = Math.trunc(calls / 2);
  expect(outcomes).toEqual({ "0": deleted, "5 plant # not found": calls - deleted });
  expect(plants.size).toBe(plantCount - deleted);
  // A set iterates over its members in the order in which they were added.
  expect(plants.values().next().value).toBe(BigInt(2 * deleted + 2));
  // A connection that has received GOAWAY accepts no further calls.
  expect(await client.deletePlant(1n, tokens.good)).toBe("5 plant 1 not found");
  expect(connections.count).toBe(1);
}

async function startStreamServer(): Promise<{ readonly address: Address } & AsyncDisposable> {
  const gateway = createTestGateway({
    routes: (router) =>
      router.service(StreamService, { echo: (pieces) => pieces, count: ({ pieces }) => countTo(pieces) }),
  });
  return { address: await gateway.listen(), [Symbol.asyncDispose]: () => gateway.close() };
}

async function* countTo(pieces: number): AsyncGenerator<{ number: number; content: Uint8Array }> {
  const content = new Uint8Array(countedBytes);
  for (let number = 0; number < pieces; number++) yield { number, content };
}

/** How many connections this process's servers have accepted. Dispose it with `using`. */
type ConnectionCount = { readonly count: number; [Symbol.dispose](): void };

function countConnections(): ConnectionCount {
  // Published by node for each connection that a server accepts.
  const channel = "net.server.socket";
  let count = 0;
  const add = (): void => void count++;
  subscribe(channel, add);
  return {
    get count() {
      return count;
    },
    [Symbol.dispose]: () => void unsubscribe(channel, add),
  };
}
