import { createGateway, type Gateway, type GatewayOptions } from "../../../gateway/src/index.ts";
import { createHttpEngine } from "../../../http-engine/src/index.ts";

/** Whether the servers under test serve HTTP with node:http and node:http2: `TEST_HTTP_ENGINE=node`. */
export const isNodeEngine: boolean = process.env["TEST_HTTP_ENGINE"] === "node";

/** The option that selects the HTTP of gateways under test. */
export const testEngine: Pick<GatewayOptions, "engine"> = isNodeEngine ? {} : { engine: createHttpEngine() };

/** Returns the rows of a table that are to hold on the HTTP under test: on node's, all but those that it does otherwise. */
export function heldRows<Row extends { readonly name: string }>(
  rows: readonly Row[],
  otherOnNode: readonly string[],
): readonly Row[] {
  return isNodeEngine ? rows.filter(({ name }) => !otherOnNode.includes(name)) : rows;
}

/** Creates a gateway on the HTTP that is under test. */
export function createTestGateway(options: GatewayOptions): Gateway {
  return createGateway({ ...testEngine, ...options });
}
