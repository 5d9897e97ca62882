// Prints the modules that a warm DeletePlant call enters, in order, with one line for each protocol and format. Usage:
// `node --import ./tools/call-path/record-modules.ts tools/call-path/main.ts`.
import { createHttpEngine } from "../../packages/http-engine/src/index.ts";
import { createGateway } from "../../packages/gateway/src/index.ts";
import { PlantService } from "../../src/gen/es/plantstore/v1/plant_service_pb.ts";
import { KeptConnections } from "../../packages/testing/src/gateway/kept-connections.ts";
import { wireFormats } from "../../packages/testing/src/gateway/wire-format.ts";
import { deletePlantRequest } from "../../test/support/plants/delete-plant.ts";

const gateway = createGateway({
  engine: createHttpEngine(),
  routes: (router) => {
    router.rpc(PlantService.method.deletePlant, () => {
      globalThis.moduleEntered?.("handler");
      return {};
    });
  },
});
const address = await gateway.listen({ host: "127.0.0.1" });
const connections = new KeptConnections();

for (const format of Object.values(wireFormats)) {
  const [httpVersion] = format.httpVersions;
  if (httpVersion === undefined) throw new TypeError(`${format.name} has no HTTP version`);
  const request = deletePlantRequest(format, 7n, []);
  // The first call opens the connection and prepares targets and codecs.
  await connections.exchange(address, httpVersion, request);
  const path: string[] = [];
  globalThis.moduleEntered = (module) => {
    if (path.at(-1) !== module) path.push(module);
  };
  await connections.exchange(address, httpVersion, request);
  globalThis.moduleEntered = undefined;
  console.log(format.name, ...path);
}

connections[Symbol.dispose]();
await gateway.close();
