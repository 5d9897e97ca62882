/**
 * The plant store's client for Node, over gRPC. Sends the credential with each call, and retries safely. `@grpc/grpc-js`
 * is an optional peer dependency, which only `plantstore/client` requires.
 */
export {
  type CallOptions,
  createPlantClient,
  type DeleteOutcome,
  type PlantClient,
  PlantClientError,
  type PlantClientOptions,
} from "./create-plant-client.ts";
export { DeletePlantRequest, PlantServiceClient } from "../gen/grpc-js/plantstore/v1/plant_service.ts";
