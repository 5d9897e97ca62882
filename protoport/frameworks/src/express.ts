import type { IncomingMessage } from "node:http";
import type { NodeHandler } from "@protoport/gateway";
import { createMount, type MountOptions } from "./mount.ts";

/** Options for {@link expressConnectMiddleware}. */
export type ExpressConnectOptions = MountOptions<IncomingMessage>;

type ExpressHandler = (
  request: IncomingMessage,
  response: Parameters<NodeHandler>[1],
  next: (error?: Error) => void,
) => void;

/** Middleware for Express, with types that versions 4 and 5 accept. */
export interface ExpressConnectMiddleware extends ExpressHandler {
  /**
   * Aborts the signals of calls that are still in flight after `closeTimeoutMs`. Call `close` together with
   * `server.close`, which waits for calls.
   */
  close(): void;
}

/**
 * Creates middleware for Express that serves Connect routes: `app.use(expressConnectMiddleware({ routes }))`. Use the
 * middleware before any body parser. A mount path, as in `app.use("/api", …)`, precedes the RPCs' paths.
 *
 * @throws as `createGateway` does
 */
export function expressConnectMiddleware(options: ExpressConnectOptions): ExpressConnectMiddleware {
  const { serve, close } = createMount(options);
  const middleware: ExpressHandler = (request, response, next) => serve(request, request, response, next);
  return Object.assign(middleware, { close });
}
