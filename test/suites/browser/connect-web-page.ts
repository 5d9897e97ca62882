// Runs in the page, with the imports of a bundled page.
import { createClient, type Transport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcWebTransport } from "@connectrpc/connect-web";
import { PlantService } from "../../../src/gen/es/plantstore/v1/plant_service_pb.ts";

export type Client = { readonly protocol: "connect" | "grpc-web"; readonly binary: boolean };

export interface Call {
  readonly baseUrl: string;
  readonly id: bigint;
  readonly token?: string;
  readonly timeoutMs?: number;
}

/** Deletes a plant, and resolves to "ok" or to the client's error as text. */
export async function deletePlant(client: Client, { baseUrl, id, token, timeoutMs }: Call): Promise<string> {
  const headers: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` };
  try {
    const call = { headers, ...(timeoutMs !== undefined && { timeoutMs }) };
    await createClient(PlantService, openTransport(client, baseUrl)).deletePlant({ id }, call);
    return "ok";
  } catch (error) {
    return String(error);
  }
}

function openTransport({ protocol, binary }: Client, baseUrl: string): Transport {
  const options = { baseUrl, useBinaryFormat: binary };
  return protocol === "connect" ? createConnectTransport(options) : createGrpcWebTransport(options);
}
