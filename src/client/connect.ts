/**
 * The service for Connect clients in browsers and Node. The transport determines the protocol: Connect, gRPC-Web or
 * gRPC.
 *
 * The client requires `@connectrpc/connect` and `@bufbuild/protobuf`, and a transport from `@connectrpc/connect-web` or
 * `@connectrpc/connect-node`.
 *
 * @example
 * ```ts
 * const transport = createConnectTransport({ baseUrl, interceptors: [bearer(token)] });
 * await createClient(PlantService, transport).deletePlant({ id: 42n });
 * ```
 */
import type { Interceptor } from "@connectrpc/connect";
import { credentialsOf } from "./credential.ts";

export { DeletePlantRequestSchema, PlantService } from "../gen/es/plantstore/v1/plant_service_pb.ts";

/**
 * Returns an interceptor that sends a bearer token with every call (RFC 6750 §2.1).
 *
 * @param token - the token, or a function that returns a token for each call. Pass a function if tokens expire. If the
 * function throws, or returns an invalid token, the call fails
 * @throws Error when the token is empty, or contains a character that RFC 6750 does not allow
 */
export function bearer(token: string | (() => string | Promise<string>)): Interceptor {
  const credential = credentialsOf(token);
  return (next) => async (request) => {
    request.header.set("authorization", typeof credential === "string" ? credential : await credential());
    return await next(request);
  };
}
