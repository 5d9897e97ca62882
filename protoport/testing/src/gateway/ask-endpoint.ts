import { createContextValues } from "@connectrpc/connect";
import type { Endpoint, EndpointResponse } from "../../../gateway/src/index.ts";

/** Calls an endpoint without a gateway. @param header - the request fields, in lower case */
export async function askEndpoint(
  endpoint: Endpoint | undefined,
  header: Readonly<Record<string, string>> = {},
): Promise<EndpointResponse> {
  if (endpoint === undefined) throw new Error("the endpoint is missing");
  // oxfmt-ignore
  return await endpoint.handle({
    httpMethod: "GET", target: endpoint.path, readBody: async () => new Uint8Array(0),
    header: { get: (name) => header[name] ?? null }, peer: { address: "127.0.0.1", port: 50_000 },
    contextValues: createContextValues(),
  });
}
