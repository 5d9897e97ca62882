import { Server, ServerCredentials } from "@grpc/grpc-js";
import { serve } from "../servers/serve.ts";
import { echoDefinition, echoHandlers } from "./echo-handlers.ts";

// Server on grpc-js with the echo service's streams.
await serve(async () => {
  const server = new Server();
  server.addService(echoDefinition, echoHandlers);
  const credentials = ServerCredentials.createInsecure();
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync("127.0.0.1:0", credentials, (error, bound) => (error === null ? resolve(bound) : reject(error)));
  });
  return { port };
});
