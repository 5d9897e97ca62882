import type { ConnectRouter } from "@connectrpc/connect";
import type { GatewayOptions } from "../../../gateway/src/index.ts";
import { createReflectionService, ServerReflection } from "../../../gateway/src/reflection/index.ts";
import { GreenhouseService, startGreenhouse, startProxy } from "@protoport/testing/proxy";
import type { TestGreenhouse, TestProxy } from "@protoport/testing/proxy";

type StartParameters = Parameters<typeof startGreenhouse>;

/** Starts a proxy in front of a greenhouse. Dispose of both with `await using`. */
export async function startProxied(
  implementation: StartParameters[0],
  options: Parameters<typeof startProxy>[2] = {},
  files: Parameters<typeof startProxy>[1] = [GreenhouseService.file],
): Promise<TestProxy & { readonly greenhouse: TestGreenhouse }> {
  const greenhouse = await startGreenhouse(implementation);
  const proxied = await startProxy(`http://127.0.0.1:${greenhouse.address.port}`, files, options);
  const dispose = async (): Promise<void> => {
    await proxied[Symbol.asyncDispose]();
    await greenhouse[Symbol.asyncDispose]();
  };
  return { ...proxied, greenhouse, [Symbol.asyncDispose]: dispose };
}

/** Starts a greenhouse with server reflection. Dispose of the greenhouse with `await using`. */
export async function startReflectedGreenhouse(
  implementation: StartParameters[0],
  options: Partial<GatewayOptions> = {},
  listenOptions: StartParameters[2] = {},
): Promise<TestGreenhouse & { readonly baseUrl: string }> {
  const routes = (router: ConnectRouter): void => {
    router.service(GreenhouseService, implementation);
    router.service(ServerReflection, createReflectionService([GreenhouseService, ServerReflection]));
  };
  const started = await startGreenhouse({}, { routes, ...options }, { host: "127.0.0.1", ...listenOptions });
  return Object.assign(started, { baseUrl: `http://127.0.0.1:${started.address.port}` });
}
