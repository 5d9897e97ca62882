import { createGateway, type Gateway, type GatewayOptions } from "../../../gateway/src/index.ts";
import { serveWithHandler } from "./serve-with-handler.ts";

/** Whether gateways under test serve with `handler` on node:http and node:http2. `TEST_HANDLER=node` sets the value. */
export const usesHandler: boolean = process.env["TEST_HANDLER"] === "node";

/** Returns the test cases that apply to the server under test. Node's servers differ in the others. */
export const heldRows = <Row extends { readonly name: string }>(
  rows: readonly Row[],
  otherOnNode: readonly string[],
): readonly Row[] => (usesHandler ? rows.filter(({ name }) => !otherOnNode.includes(name)) : rows);

/** Creates a gateway that listens on the server under test. */
export function createTestGateway(options: GatewayOptions): Gateway {
  const gateway = createGateway(options);
  return usesHandler ? serveWithHandler(gateway) : gateway;
}
