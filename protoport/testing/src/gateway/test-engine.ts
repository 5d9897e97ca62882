import { createGateway, type Gateway, type GatewayOptions } from "../../../gateway/src/index.ts";
import { createHttpEngine } from "../../../gateway/src/engine/index.ts";

/** Whether the servers under test serve HTTP with node:http and node:http2. `TEST_HTTP_ENGINE=node` sets the value. */
export const isNodeEngine: boolean = process.env["TEST_HTTP_ENGINE"] === "node";

/** The option that selects the HTTP engine for gateways under test. */
export const testEngine: Pick<GatewayOptions, "engine"> = isNodeEngine ? {} : { engine: createHttpEngine() };

/** Returns the test cases that apply to the engine under test. Node's engine differs in the others. */
export function heldRows<Row extends { readonly name: string }>(
  rows: readonly Row[],
  otherOnNode: readonly string[],
): readonly Row[] {
  return isNodeEngine ? rows.filter(({ name }) => !otherOnNode.includes(name)) : rows;
}

/** Creates a gateway on the engine under test. */
export function createTestGateway(options: GatewayOptions): Gateway {
  return createGateway({ ...testEngine, ...options });
}
