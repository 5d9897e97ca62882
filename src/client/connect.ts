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
export { bearer } from "./bearer.ts";
export { DeletePlantRequestSchema, PlantService } from "../gen/es/plantstore/v1/plant_service_pb.ts";
