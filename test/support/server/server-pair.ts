import { writeFileSync } from "node:fs";
import { createIssuedCertificate } from "../../../packages/testing/src/carriers/certificate.ts";
import { startPlantServer, type TestPlantServer } from "./plant-server.ts";
import { openSituationStore } from "../plants/situation-store.ts";
import { createTempFolder } from "../../../packages/testing/src/process/temp-folder.ts";

/** Two servers over the same plants, for clients that are to reach both. Dispose of it with `disposeAsync`. */
export interface ServerPair extends AsyncDisposable {
  readonly cleartext: TestPlantServer;
  /** Speaks TLS, as `localhost`: since Node 26 no IP address is taken for the name of a server, which grpc-js asks for. */
  readonly secure: TestPlantServer;
  /** The file with the certificate of the authority that vouches for it. */
  readonly authorityFile: string;
}

/** Starts the two over a store that is the given set. */
export async function startServerPair(plants: Set<bigint>): Promise<ServerPair> {
  await using opened = new AsyncDisposableStack();
  const folder = opened.use(createTempFolder());
  const authorityFile = folder.file("authority.pem");
  const tls = createIssuedCertificate("localhost");
  writeFileSync(authorityFile, tls.authority);
  const cleartext = opened.use(await startPlantServer({ store: openSituationStore(plants) }));
  const secure = opened.use(await startPlantServer({ store: openSituationStore(plants), tls }));
  const toClose = opened.move();
  return { cleartext, secure, authorityFile, [Symbol.asyncDispose]: () => toClose.disposeAsync() };
}
