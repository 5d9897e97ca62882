import type { GatewayOptions } from "@plantstore/gateway";
import { createHttpEngine } from "@plantstore/http-engine";

/** The HTTP that serves connections: the engine of the gateway, or node:http and node:http2. */
export type HttpEngineName = "own" | "node";

/**
 * Returns the option of a gateway that selects its HTTP.
 *
 * @throws TypeError for another name, which JavaScript may give
 */
export function httpEngineOf(name: HttpEngineName = "own"): Pick<GatewayOptions, "engine"> {
  if (name === "own") return { engine: createHttpEngine() };
  if (name === "node") return {};
  throw new TypeError(`httpEngine must be "own" or "node", got ${JSON.stringify(name)}`);
}
