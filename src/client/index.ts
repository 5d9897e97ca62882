/**
 * The client of the plant store for Node, over gRPC.
 *
 * The stub is generated from the proto; this adds what every caller would otherwise have to write: the credential on
 * each call, safe retries and, by `createPlants`, promises with a deadline. `@grpc/grpc-js` is an optional peer
 * dependency of the package, which only this export needs.
 */
export { createPlantClient, type PlantClientOptions } from "./create-plant-client.ts";
export {
  type CallOptions,
  createPlants,
  type DeleteOutcome,
  type Plants,
  PlantsError,
  type PlantsOptions,
} from "./create-plants.ts";
export { DeletePlantRequest, PlantServiceClient } from "../gen/grpc-js/plantstore/v1/plant_service.ts";
