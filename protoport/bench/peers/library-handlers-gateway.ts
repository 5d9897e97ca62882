import { createGateway } from "../../gateway/src/index.ts";
import { addGrpcJsService } from "../../grpc-handlers/src/grpc-js.ts";
import { LibraryService } from "../../testing/src/gen/library/v1/library_pb.ts";
import { ownHttp } from "../servers/package-code.ts";
import { serve } from "../servers/serve.ts";
import * as generated from "./gen/library/v1/library.ts";
import { library } from "./library-handlers.ts";

// The gateway with the grpc-js handlers.
const descriptors = [LibraryService];
const messages = process.env["LIBRARY_MESSAGES"] === "1" ? generated : {};
const gateway = createGateway({
  ...(await ownHttp()),
  routes: (router) =>
    void addGrpcJsService(router, generated.LibraryServiceService, library, { descriptors, messages }),
});
await serve(() => gateway.listen({ host: "127.0.0.1", port: 0 }));
