import { LibraryService } from "../../testing/src/gen/library/v1/library_pb.ts";
import { library } from "./library-routes.ts";
import { importEntry, ownHttp } from "./package-code.ts";
import { serve } from "./serve.ts";

// The gateway with the library and no interceptors.
const { createGateway } = await importEntry<typeof import("../../gateway/src/index.ts")>(
  "protoport/gateway/src/index.ts",
);

const gateway = createGateway({ ...(await ownHttp()), routes: (router) => router.service(LibraryService, library) });
await serve(() => gateway.listen({ host: "127.0.0.1", port: 0 }));
