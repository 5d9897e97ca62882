import { createServer } from "node:http";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { PlantService } from "../../src/gen/es/plantstore/v1/plant_service_pb.ts";

// Server on connect-node's adapter, with one service that does nothing.
const handler = connectNodeAdapter({ routes: (router) => router.service(PlantService, { deletePlant: () => ({}) }) });
const server = createServer(handler).listen(0, "127.0.0.1", () => {
  const address = server.address();
  console.error(`port ${typeof address === "object" ? address?.port : address}`);
});
