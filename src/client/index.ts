/**
 * The plant store's client for Node, over gRPC.
 *
 * The stub is generated from the proto; this adds what every caller needs and would otherwise write
 * again: the credential on each call, and retries of what is safe to retry. `@grpc/grpc-js` is an
 * optional peer dependency of the package, needed by this export alone.
 */
export { createPlantClient, type PlantClientOptions } from "./create-plant-client.ts";
export { DeletePlantRequest, PlantServiceClient } from "../gen/grpc-js/plantstore/v1/plant_service.ts";
