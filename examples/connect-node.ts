// The plant store on @connectrpc/connect-node and node:http2: npx node examples/connect-node.ts 8443
// The files "tokens" (plantstore token create NAME --file tokens), "cert.pem" and "key.pem" are in the current folder.
import { readFileSync } from "node:fs";
import { createSecureServer, type Http2SecureServer, type SecureServerOptions } from "node:http2";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { createGateway } from "@protoport/gateway";
import { Readiness } from "@protoport/gateway/health";
import {
  openLog,
  openSqliteStore,
  openTokenVerifier,
  type PlantGatewayParts,
  createPlantGatewayOptions,
} from "plantstore";

/**
 * Creates a node:http2 server with the same routes, interceptors and store as `createPlantServer`.
 *
 * Connect's adapter serves gRPC, gRPC-Web and Connect; the gateway serves the other requests, which are REST. The server
 * requires TLS, because without it node:http2 does not accept HTTP/1.1. Of two `Authorization` fields, Node.js passes on
 * only the first one, while `createPlantServer` refuses such a request.
 */
export function createConnectNodeServer(parts: PlantGatewayParts, tls: SecureServerOptions): Http2SecureServer {
  const plants = createPlantGatewayOptions(parts);
  const { routes, interceptors, readMaxBytes, binaryOptions } = plants;
  const handler = connectNodeAdapter({
    routes,
    interceptors: [...interceptors],
    readMaxBytes,
    binaryOptions,
    fallback: createGateway(plants).handler,
  });
  return createSecureServer({ allowHTTP1: true, ...tls }, handler);
}

if (import.meta.main) {
  const [port = "8443"] = process.argv.slice(2);
  const log = openLog("info");
  const verifier = await openTokenVerifier({ tokenHashesFile: "tokens" }, log);
  if (verifier.kind === "problems") throw new Error(verifier.problems.join("; "));
  const store = await openSqliteStore({ file: "plants.db", plantsWhenCreated: { first: 1n, last: 10n } });
  const readiness = new Readiness({ store, credentials: verifier.value });
  const server = createConnectNodeServer(
    { store, verifier: verifier.value, readiness, log },
    { cert: readFileSync("cert.pem"), key: readFileSync("key.pem") },
  );
  server.listen(Number(port), "127.0.0.1", () => {
    const address = server.address();
    if (typeof address === "object") console.log(`plants at https://127.0.0.1:${String(address?.port)}`);
  });
  process.once("SIGTERM", () => {
    readiness.startDraining();
    server.close(() => void store.close().finally(() => verifier.value.close?.()));
  });
}
