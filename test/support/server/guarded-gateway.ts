import type { TokenVerifier } from "@protoport/auth";
import type { Log } from "@protoport/telemetry/logs";
import { Readiness } from "@protoport/gateway/health";
import { createPlantTools } from "../../../src/server/plant-tools.ts";
import { type PlantStore, createPlantGatewayOptions } from "../../../src/service/index.ts";
import { type Address, createTestGateway } from "@protoport/testing";

/** One of the two places where the plant store checks credentials. */
export type Guard = "admit" | "interceptor";

/** A gateway in this process, on a free port. Dispose it with `await using`. */
export interface GuardedGateway {
  readonly address: Address;
  readonly baseUrl: string;
  [Symbol.asyncDispose](): Promise<void>;
}

/** Starts a gateway that serves the plant store and its tools, with only one credential check. */
export async function startGuardedGateway(
  guard: Guard,
  parts: { readonly verifier: TokenVerifier; readonly store: PlantStore; readonly log: Log },
): Promise<GuardedGateway> {
  const { admit, interceptors, ...plants } = createPlantGatewayOptions({ ...parts, readiness: new Readiness({}) });
  const [errorInterceptor, ...others] = interceptors;
  if (errorInterceptor === undefined || others.length !== 1) throw new Error("expected two interceptors");
  const gateway = createTestGateway({
    ...plants,
    mcp: createPlantTools(),
    ...(guard === "admit" ? { admit, interceptors: [errorInterceptor] } : { interceptors }),
  });
  const address = await gateway.listen();
  const baseUrl = `http://${address.address}:${String(address.port)}`;
  return { address, baseUrl, [Symbol.asyncDispose]: () => gateway.close() };
}
