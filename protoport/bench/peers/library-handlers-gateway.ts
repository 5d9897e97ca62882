import { createGateway } from "../../gateway/src/index.ts";
import { addGrpcJsService } from "../../grpc-handlers/src/grpc-js.ts";
import { LibraryService } from "../../testing/src/gen/library/v1/library_pb.ts";
import { ownHttp } from "../servers/package-code.ts";
import { serve } from "../servers/serve.ts";
import { LibraryServiceService } from "./gen/library/v1/library.ts";
import { library } from "./library-handlers.ts";

// The gateway with the grpc-js handlers.
const descriptors = [LibraryService];
const gateway = createGateway({
  ...(await ownHttp()),
  routes: (router) => void addGrpcJsService(router, LibraryServiceService, library, { descriptors }),
});
await serve(() => gateway.listen({ host: "127.0.0.1", port: 0 }));
