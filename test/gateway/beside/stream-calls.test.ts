import { type Client, createClient, type Transport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { GreenhouseService } from "../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { within } from "../../support/deadline.ts";
import type { HttpVersion } from "../../support/carriers/exchange.ts";
import { startSideBySide, type SideBySide } from "./side-by-side.ts";
import { streamCallTable, transcribe, type StreamCallRow } from "./stream-calls.ts";

interface Way {
  readonly name: string;
  readonly httpVersion: HttpVersion;
  readonly open: (baseUrl: string) => Transport;
}

const ways: readonly Way[] = [
  { name: "gRPC", httpVersion: "2", open: (baseUrl) => createGrpcTransport({ baseUrl }) },
  ...(["1.1", "2"] as const).flatMap((httpVersion): Way[] => [
    {
      name: `gRPC-Web over HTTP/${httpVersion}`,
      httpVersion,
      open: (baseUrl) => createGrpcWebTransport({ baseUrl, httpVersion }),
    },
    {
      name: `Connect over HTTP/${httpVersion}`,
      httpVersion,
      open: (baseUrl) => createConnectTransport({ baseUrl, httpVersion }),
    },
    {
      name: `binary Connect over HTTP/${httpVersion}`,
      httpVersion,
      open: (baseUrl) => createConnectTransport({ baseUrl, httpVersion, useBinaryFormat: true }),
    },
  ]),
];

type Pair = { readonly row: StreamCallRow; readonly way: Way; readonly name: string };

const rows: readonly Pair[] = streamCallTable.flatMap((row) =>
  ways
    .filter(({ httpVersion }) => row.bidi !== true || httpVersion === "2")
    .map((way) => ({ row, way, name: `${row.name} by ${way.name}` })),
);

describe("a client of Connect", () => {
  let servers: SideBySide;
  /** The clients of connect-node and of the gateway: each has one connection over HTTP/2, which its next call uses too. */
  let clients: ReadonlyMap<Way, readonly Client<typeof GreenhouseService>[]>;
  beforeAll(async () => {
    const started = await startSideBySide();
    servers = started;
    clients = new Map(
      ways.map((way) => [
        way,
        [started.connectNode[way.httpVersion], started.gateway].map(({ address, port }) =>
          createClient(GreenhouseService, way.open(`http://${address}:${String(port)}`)),
        ),
      ]),
    );
  });
  afterAll(() => servers[Symbol.asyncDispose]());

  test.each(rows)("sees the same of $name, whether the gateway serves it or connect-node", async ({ row, way }) => {
    const transcripts = (clients.get(way) ?? []).map((client) => transcribe(row, client));
    const [want, got] = await within(Promise.all(transcripts), "both servers");
    expect(want).toBeDefined();
    expect(got).toStrictEqual(want);
  });
});
