// Prints the modules that a warm DeletePlant call enters, in order, with one line for each protocol and format. Lines
// for a call through a proxy start with "proxied-". Usage:
// `node --import ./tools/call-path/record-modules.ts tools/call-path/main.ts`.
import { createServer } from "node:http2";
import type { ConnectRouter } from "@connectrpc/connect";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { createGateway } from "@protoport/gateway";
import { PlantService } from "../../src/gen/es/plantstore/v1/plant_service_pb.ts";
import { KeptConnections } from "../../protoport/testing/src/gateway/kept-connections.ts";
import { startProxy } from "../../protoport/testing/src/gateway/proxy.ts";
import { wireFormats } from "../../protoport/testing/src/gateway/wire-format.ts";
import type { Address } from "../../protoport/testing/src/http/exchange.ts";
import { startOnLoopback } from "../../protoport/testing/src/http/listen-on-loopback.ts";
import { deletePlantRequest } from "../../test/support/plants/delete-plant.ts";

function routes(router: ConnectRouter): void {
  router.rpc(PlantService.method.deletePlant, () => {
    globalThis.moduleEntered?.("handler");
    return {};
  });
}

const gateway = createGateway({ routes });
// The upstream is a server without instrumented modules, so that a proxied call's line has only the proxy's modules.
await using upstream = await startOnLoopback(createServer(connectNodeAdapter({ routes })));
await using proxied = await startProxy(`http://127.0.0.1:${upstream.address.port}`, [PlantService.file]);
{
  // Disposed before the servers, because some servers wait until their connections are closed.
  using connections = new KeptConnections();
  await printPaths(connections, await gateway.listen({ host: "127.0.0.1" }), "");
  await printPaths(connections, proxied.address, "proxied-");
}
await gateway.close();

async function printPaths(connections: KeptConnections, address: Address, prefix: string): Promise<void> {
  for (const format of Object.values(wireFormats)) {
    const [httpVersion] = format.httpVersions;
    if (httpVersion === undefined) throw new TypeError(`${format.name} has no HTTP version`);
    const request = deletePlantRequest(format, 7n, []);
    // The first call opens the connection and prepares targets and codecs. A connection's caches start with the second.
    for (let warmUp = 0; warmUp < 2; warmUp++) await connections.exchange(address, httpVersion, request);
    const paths: string[][] = [];
    // On a busy machine, some calls arrive in pieces, and so change the module more often.
    for (let call = 0; call < 5; call++) {
      const path: string[] = [];
      globalThis.moduleEntered = (module) => {
        if (path.at(-1) !== module) path.push(module);
      };
      await connections.exchange(address, httpVersion, request);
      globalThis.moduleEntered = undefined;
      paths.push(path);
    }
    const [shortest = []] = paths.toSorted((a, b) => a.length - b.length);
    console.log(prefix + format.name, ...shortest);
  }
}
