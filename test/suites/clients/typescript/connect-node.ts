// Deletes plants with connect-node, over the protocol that the variable PROTOCOL names.
import { ConnectError, createClient, type Transport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import { readFileSync } from "node:fs";
import { PlantService } from "../../../../src/gen/es/plantstore/v1/plant_service_pb.ts";
import { StreamService } from "../../../../protoport/testing/src/gen/streams/v1/stream_service_pb.ts";
import { type Outcome, run, trusted, url } from "./script.ts";

const nodeOptions = trusted === undefined ? {} : { ca: readFileSync(trusted) };

function openTransport(protocol: string | undefined): Transport {
  if (protocol === "grpc") return createGrpcTransport({ baseUrl: url, nodeOptions });
  if (protocol === "grpc-web") return createGrpcWebTransport({ baseUrl: url, httpVersion: "2", nodeOptions });
  return createConnectTransport({ baseUrl: url, httpVersion: protocol === "connect" ? "1.1" : "2", nodeOptions });
}

function outcomeOf(error: unknown): Outcome {
  const { code, rawMessage } = ConnectError.from(error);
  return { code, message: rawMessage };
}

const transport = openTransport(process.env["PROTOCOL"]);
const client = createClient(PlantService, transport);
const { echo, count } = createClient(StreamService, transport);

await run(
  async ({ id, header, timeoutMs }) => {
    try {
      await client.deletePlant({ id }, { headers: header, ...(timeoutMs !== undefined && { timeoutMs }) });
      return { code: 0, message: "" };
    } catch (error) {
      return outcomeOf(error);
    }
  },
  { echo, count: (pieces) => count({ pieces }), outcomeOf },
);
