// Deletes plants with connect-node, over the protocol that the variable PROTOCOL names.
import { ConnectError, createClient, type Transport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import { readFileSync } from "node:fs";
import { PlantService } from "../../../src/gen/es/plantstore/v1/plant_service_pb.ts";
import { run, trusted, url } from "./script.ts";

const nodeOptions = trusted === undefined ? {} : { ca: readFileSync(trusted) };

function openTransport(protocol: string | undefined): Transport {
  if (protocol === "grpc") return createGrpcTransport({ baseUrl: url, nodeOptions });
  if (protocol === "grpc-web") return createGrpcWebTransport({ baseUrl: url, httpVersion: "2", nodeOptions });
  return createConnectTransport({ baseUrl: url, httpVersion: "1.1", nodeOptions });
}

const client = createClient(PlantService, openTransport(process.env["PROTOCOL"]));

await run(async ({ id, header, timeoutMs }) => {
  try {
    await client.deletePlant({ id }, { headers: header, ...(timeoutMs !== undefined && { timeoutMs }) });
    return { code: 0, message: "" };
  } catch (error) {
    const { code, rawMessage } = ConnectError.from(error);
    return { code, message: rawMessage };
  }
});
