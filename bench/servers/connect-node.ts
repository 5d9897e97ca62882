import { Code, ConnectError, type ConnectRouter, type Interceptor } from "@connectrpc/connect";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { createServer as createHttp1Server } from "node:http";
import { createServer as createHttp2Server } from "node:http2";
import { PlantService } from "../../src/gen/es/plantstore/v1/plant_service_pb.ts";
import { isAdmitted, messages } from "./credential.ts";
import { createBenchPlants } from "./plants.ts";
import { listen, serve } from "../../protoport/bench/servers/serve.ts";

// Server on connect-node's adapter, which checks the credential in an interceptor. HTTP_VERSION selects node:http or
// node:http2.
const plants = createBenchPlants();

const authenticate: Interceptor = (next) => async (request) => {
  if (isAdmitted(request.header.get("authorization") ?? undefined)) return await next(request);
  throw new ConnectError(messages.unauthenticated.message, Code.Unauthenticated);
};

function routes(router: ConnectRouter): void {
  router.service(PlantService, {
    deletePlant: ({ id }) => {
      if (id === undefined) throw new ConnectError("id is missing", Code.InvalidArgument);
      if (!plants.delete(id)) throw new ConnectError(messages.notFound(id).message, Code.NotFound);
      return {};
    },
  });
}

const handler = connectNodeAdapter({ routes, interceptors: [authenticate] });
const isHttp2 = process.env["HTTP_VERSION"] === "2";
await serve(() => listen(isHttp2 ? createHttp2Server({}, handler) : createHttp1Server(handler)));
