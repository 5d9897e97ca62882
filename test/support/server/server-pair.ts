import { writeFileSync } from "node:fs";
import { createIssuedCertificate } from "../../../protoport/testing/src/http/certificate.ts";
import { startPlantServer, type TestPlantServer } from "./plant-server.ts";
import { openSituationStore } from "../plants/situation-store.ts";
import { createTempFolder } from "../../../protoport/testing/src/process/temp-folder.ts";

/** Two servers with the same plants. Dispose it with `disposeAsync`. */
export interface ServerPair extends AsyncDisposable {
  readonly cleartext: TestPlantServer;
  /** Serves TLS as `localhost`, because grpc-js sends an IP address as the server name, which Node 26 rejects. */
  readonly secure: TestPlantServer;
  /** The file with its authority's certificate. */
  readonly authorityFile: string;
}

/** Starts both servers with one store that has these plants. */
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
