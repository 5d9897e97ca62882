import { createContextValues } from "@connectrpc/connect";
import type { Endpoint, EndpointResponse } from "../../../gateway/src/index.ts";

/** Asks an endpoint without a gateway around it. @param header - the fields of the request, in lower case */
export async function askEndpoint(
  endpoint: Endpoint | undefined,
  header: Readonly<Record<string, string>> = {},
): Promise<EndpointResponse> {
  if (endpoint === undefined) throw new Error("there is no such endpoint");
  return await endpoint.handle({
    httpMethod: "GET",
    target: endpoint.path,
    readBody: async () => new Uint8Array(0),
    header: { get: (name) => header[name] ?? null },
    peer: { address: "127.0.0.1", port: 50_000 },
    contextValues: createContextValues(),
  });
}
