import { createGateway } from "../../gateway/src/index.ts";
import { addGrpcJsService } from "../../grpc-handlers/src/grpc-js.ts";
import { EchoService } from "../servers/echo-service.ts";
import { ownHttp } from "../servers/package-code.ts";
import { serve } from "../servers/serve.ts";
import { echoDefinition, echoHandlers } from "./echo-handlers.ts";

// The gateway with the grpc-js handlers.
const descriptors = [EchoService];
const gateway = createGateway({
  ...(await ownHttp()),
  routes: (router) => void addGrpcJsService(router, echoDefinition, echoHandlers, { descriptors }),
});
await serve(() => gateway.listen({ host: "127.0.0.1", port: 0 }));
