/**
 * The service for Connect clients in browsers and Node, over Connect, gRPC-Web or gRPC, depending on the transport.
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
