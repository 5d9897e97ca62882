import { restRules, routes } from "./echo-service.ts";
import { importEntry, ownHttp } from "./package-code.ts";
import { serve } from "./serve.ts";

// The gateway with the echo service and no interceptors.
const { createGateway } = await importEntry<typeof import("../../gateway/src/index.ts")>(
  "protoport/gateway/src/index.ts",
);

const gateway = createGateway({ ...(await ownHttp()), routes, rest: { rules: restRules } });
await serve(() => gateway.listen({ host: "127.0.0.1", port: 0 }));
