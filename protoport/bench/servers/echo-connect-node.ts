import { connectNodeAdapter } from "@connectrpc/connect-node";
import { createServer } from "node:http2";
import { routes } from "./echo-service.ts";
import { listen, serve } from "./serve.ts";

// Server on connect-node's adapter with the echo service and no interceptors.
await serve(() => listen(createServer({}, connectNodeAdapter({ routes }))));
