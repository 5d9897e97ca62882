import { createGateway } from "@protoport/gateway";
import { PlantService } from "../../src/gen/es/plantstore/v1/plant_service_pb.ts";

// The gateway alone, with one service that does nothing.
const gateway = createGateway({ routes: (router) => router.service(PlantService, { deletePlant: () => ({}) }) });
const { port } = await gateway.listen({ host: "127.0.0.1", port: 0 });
console.error(`port ${port}`);
