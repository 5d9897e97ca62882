import { createRegistry } from "@bufbuild/protobuf";
import { ConnectError, createClient } from "@connectrpc/connect";
import type { ServerResponse } from "node:http";
import { createRestTransport, type RestTransportOptions } from "../../../rest-client/src/index.ts";
import { KitchenSink, NestedSchema } from "../gen/kitchensink/v1/kitchen_sink_pb.ts";
import { startRestServer } from "./rest-server.ts";
import { within } from "../deadline.ts";

const registry = createRegistry(NestedSchema);

/** Calls `Query`, and returns the response message or the error. */
export async function ask(
  respond: (response: ServerResponse) => void,
  options: Partial<RestTransportOptions> = {},
): Promise<unknown> {
  await using server = await startRestServer(respond);
  const transport = createRestTransport({ baseUrl: server.baseUrl, registry, ...options });
  return await within(createClient(KitchenSink, transport).query({}).catch(asError), "a response");
}

/** Returns a ConnectError unchanged, and throws any other value. */
export function asError(value: unknown): ConnectError {
  if (value instanceof ConnectError) return value;
  throw value;
}
