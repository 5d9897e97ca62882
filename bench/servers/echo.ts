import { restRules, routes } from "./echo-service.ts";
import { importEntry } from "./package-code.ts";
import { serve } from "./serve.ts";

// The gateway with the echo service and no interceptors, on either server of HTTP/2.
const { createGateway } = await importEntry<typeof import("../../src/gateway/index.ts")>("gateway/index");

const gateway = createGateway({ routes, rest: { rules: restRules } });
const http2 = process.env["HTTP2_ENGINE"] === "node" ? "node" : "own";
await serve(() => gateway.listen({ host: "127.0.0.1", port: 0, http2 }));
