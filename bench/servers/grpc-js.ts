import { Server, ServerCredentials, status, type handleUnaryCall } from "@grpc/grpc-js";
import { PlantServiceService, type DeletePlantRequest } from "../../src/gen/grpc-js/plantstore/v1/plant_service.ts";
import { isAdmitted, messages } from "./credential.ts";
import { createBenchPlants } from "./plants.ts";
import { serve } from "../../protoport/bench/servers/serve.ts";
import { certificate } from "../../protoport/bench/servers/tls.ts";

// Server on grpc-js with the ts-proto stubs. The handler checks the credential.
const plants = createBenchPlants();

const deletePlant: handleUnaryCall<DeletePlantRequest, object> = (call, done) => {
  if (!isAdmitted(call.metadata.get("authorization")[0]?.toString()))
    return done({ code: status.UNAUTHENTICATED, details: messages.unauthenticated.message });
  const { id } = call.request;
  if (id === undefined) return done({ code: status.INVALID_ARGUMENT, details: "id is missing" });
  if (plants.delete(id)) return done(null, {});
  return done({ code: status.NOT_FOUND, details: messages.notFound(id).message });
};

await serve(async () => {
  const server = new Server();
  server.addService(PlantServiceService, { deletePlant });
  const credentials = credentialsOf(certificate);
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync("127.0.0.1:0", credentials, (error, bound) => (error === null ? resolve(bound) : reject(error)));
  });
  return { port };
});

function credentialsOf(served: typeof certificate): ServerCredentials {
  if (served === undefined) return ServerCredentials.createInsecure();
  const pair = { cert_chain: Buffer.from(served.cert), private_key: Buffer.from(served.key) };
  return ServerCredentials.createSsl(null, [pair]);
}
