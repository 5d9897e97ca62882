import type { Gateway, ListenOptions } from "../../../src/gateway/index.ts";
import { createCertificate } from "../carriers/certificate.ts";
import type { Address } from "../carriers/exchange.ts";
import { openTlsTunnel } from "../carriers/tls-tunnel.ts";

/** A gateway that listens. */
export interface Listening {
  /** Where clients in clear reach it. */
  readonly address: Address;
  [Symbol.asyncDispose](): Promise<void>;
}

/** Whether tables of rows in clear are to go through a tunnel of TLS: `npm run test:tls`. */
const byTls = process.env["TEST_TLS"] === "1";
const certificate = createCertificate("tests");

/** Lets a gateway listen, behind a tunnel of TLS where that is wanted and nothing else is said of where. */
export async function listenForTests(gateway: Gateway, options: ListenOptions): Promise<Listening> {
  const close = (): Promise<void> => gateway.close();
  if (!byTls || options.path !== undefined || options.tls !== undefined) {
    return { address: await gateway.listen(options), [Symbol.asyncDispose]: close };
  }
  const tunnel = await openTlsTunnel(await gateway.listen({ ...options, tls: certificate }), certificate);
  return { address: tunnel.address, [Symbol.asyncDispose]: () => close().finally(() => tunnel.close()) };
}
