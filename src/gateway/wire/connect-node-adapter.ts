import { createGateway, type GatewayOptions } from "./gateway.ts";
import type { NodeHandler } from "./node-handler.ts";

/**
 * The handler of a gateway by the name that `@connectrpc/connect-node` has for its own: a server that
 * stands on that package changes the import and nothing else.
 *
 * @throws Error listing every problem of the HTTP rules at once
 */
export function connectNodeAdapter(options: GatewayOptions): NodeHandler {
  return createGateway(options).handler;
}
