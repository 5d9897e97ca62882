import { Server, ServerCredentials } from "@grpc/grpc-js";
import { LibraryServiceService } from "./gen/library/v1/library.ts";
import { library } from "./library-handlers.ts";
import { serve } from "../servers/serve.ts";

// Server on grpc-js with the stubs and ts-proto messages.
await serve(async () => {
  const server = new Server();
  server.addService(LibraryServiceService, library);
  const credentials = ServerCredentials.createInsecure();
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync("127.0.0.1:0", credentials, (error, bound) => (error === null ? resolve(bound) : reject(error)));
  });
  return { port };
});
