/**
 * The plant store's client for Node, over gRPC.
 *
 * `createPlantClient` returns a client whose calls are promises with a deadline. `createPlantStub` returns the
 * generated stub. The client and the stub send the credential with each call, and retry safely. `@grpc/grpc-js` is an
 * optional peer dependency, which only `plantstore/client` requires.
 */
export { createPlantStub, type PlantStubOptions } from "./create-plant-stub.ts";
export {
  type CallOptions,
  createPlantClient,
  type DeleteOutcome,
  type PlantClient,
  PlantClientError,
  type PlantClientOptions,
} from "./create-plant-client.ts";
export { DeletePlantRequest, PlantServiceClient } from "../gen/grpc-js/plantstore/v1/plant_service.ts";
