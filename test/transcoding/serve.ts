import { createGateway } from "../../src/gateway/index.ts";
import { echoOptions } from "./echo-backend.ts";

// `node test/transcoding/serve.ts PORT`: the echo contract behind this project's gateway.
await createGateway(echoOptions).listen({ host: "127.0.0.1", port: Number(process.argv[2] ?? 8080) });
