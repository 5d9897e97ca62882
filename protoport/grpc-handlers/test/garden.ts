import { join } from "node:path";
import type { ServiceDefinition, UntypedServiceImplementation } from "@grpc/grpc-js";
import { loadSync, type Options } from "@grpc/proto-loader";
import { createTestGateway, listenForTests, type Listening, projectFolder } from "@protoport/testing";
import type { GatewayOptions } from "../../gateway/src/index.ts";
import { addGrpcJsService, type GrpcJsOptions } from "../src/grpc-js.ts";

const folders = ["protoport/grpc-handlers/test/proto", "protoport/gateway/proto"];
export const includeDirs: readonly string[] = folders.map((folder) => join(projectFolder, folder));

let garden: ServiceDefinition | undefined;

/** Returns the garden's definition. Without options, all calls share one definition, which takes 20 ms to load. */
export const loadGarden = (options?: Options): ServiceDefinition =>
  options === undefined ? (garden ??= readGarden({})) : readGarden(options);

function readGarden(options: Options): ServiceDefinition {
  const loaded = loadSync("garden/v1/garden.proto", { includeDirs: [...includeDirs], longs: String, ...options });
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the types of proto-loader allow messages here.
  return loaded["garden.v1.Garden"] as ServiceDefinition;
}

export type Fault = { readonly error: unknown; readonly what: string; readonly errorCode: string };

/** A gateway with grpc-js handlers. Dispose it with `await using`. */
export interface TestGarden extends Listening {
  readonly faults: readonly Fault[];
}

export async function startGarden(
  implementation: UntypedServiceImplementation,
  options: GrpcJsOptions = {},
  gatewayOptions: Partial<GatewayOptions> = {},
  definition: ServiceDefinition = loadGarden(),
): Promise<TestGarden> {
  const faults: Fault[] = [];
  const gateway = createTestGateway({
    routes: (router) => void addGrpcJsService(router, definition, implementation, options),
    onFault: (error, what, _request, errorCode) => void faults.push({ error, what, errorCode }),
    ...gatewayOptions,
  });
  return { ...(await listenForTests(gateway)), faults };
}
