import type { GatewayOptions } from "@protoport/gateway";
import { createHttpEngine } from "@protoport/gateway/engine";

/** The HTTP implementation: `plantstore` is @protoport/gateway/engine, `node` is node:http and node:http2. */
export type HttpEngineName = "plantstore" | "node";

/**
 * Returns the gateway option for an HTTP implementation.
 *
 * @throws TypeError for an unknown name. JavaScript callers can pass any name
 */
export function httpEngineOf(name: HttpEngineName = "plantstore"): Pick<GatewayOptions, "engine"> {
  if (name === "plantstore") return { engine: createHttpEngine() };
  if (name === "node") return {};
  throw new TypeError(`httpEngine must be "plantstore" or "node", got ${JSON.stringify(name)}`);
}
