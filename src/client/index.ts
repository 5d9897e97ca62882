/**
 * The client of the plant store for Node, over gRPC.
 *
 * `createPlants` returns a client whose calls are promises with a deadline. `createPlantClient` returns the generated stub.
 * Both send the credential with each call, and retry safely. `@grpc/grpc-js` is an optional peer dependency of the
 * package, which only this export requires.
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
