import { Code, ConnectError, createClient, type Transport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import { describe, expect, test } from "vitest";
import { PlantService } from "../../src/plantstore/gen/es/plantstore/v1/plant_service_pb.ts";
import { openMemoryStore } from "../../src/plantstore/plants/index.ts";
import { startPlantServer, tokens } from "../support/server/plant-server.ts";

interface Row {
  readonly name: string;
  readonly open: (baseUrl: string) => Transport;
}

const transports: readonly Row[] = [
  { name: "gRPC", open: (baseUrl) => createGrpcTransport({ baseUrl }) },
  { name: "gRPC with JSON", open: (baseUrl) => createGrpcTransport({ baseUrl, useBinaryFormat: false }) },
  ...(["1.1", "2"] as const).flatMap((httpVersion) => [
    {
      name: `gRPC-Web over HTTP/${httpVersion}`,
      open: (baseUrl: string) => createGrpcWebTransport({ baseUrl, httpVersion }),
    },
    {
      name: `Connect over HTTP/${httpVersion}`,
      open: (baseUrl: string) => createConnectTransport({ baseUrl, httpVersion }),
    },
    {
      name: `binary Connect over HTTP/${httpVersion}`,
      open: (baseUrl: string) => createConnectTransport({ baseUrl, httpVersion, useBinaryFormat: true }),
    },
  ]),
];

/** Beyond what a double holds, so that a client that goes through one shows. */
const id = 2n ** 53n + 1n;

describe("connect-node's client", () => {
  test.each(transports)("deletes a plant once, as $name", async ({ open }) => {
    await using server = await startPlantServer({ store: openMemoryStore(new Set([id])) });
    const client = createClient(PlantService, open(`http://127.0.0.1:${String(server.address.port)}`));
    const headers = { authorization: `Bearer ${tokens.good}` };

    expect(await client.deletePlant({ id }, { headers })).toMatchObject({ $typeName: "google.protobuf.Empty" });

    const again = await client.deletePlant({ id }, { headers }).catch((error: unknown) => ConnectError.from(error));
    expect(again).toMatchObject({ code: Code.NotFound, rawMessage: `plant ${String(id)} not found` });

    const anonymous = await client.deletePlant({ id }).catch((error: unknown) => ConnectError.from(error));
    expect(anonymous).toMatchObject({ code: Code.Unauthenticated, rawMessage: "a bearer token is required" });
    expect(anonymous).toSatisfy(
      (error: ConnectError) => error.metadata.get("www-authenticate") === 'Bearer realm="plantstore"',
    );
  });
});
