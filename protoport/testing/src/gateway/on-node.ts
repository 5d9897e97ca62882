import { BacklogBudget, defaultLimits } from "../../../gateway/src/http/exchange/index.ts";
import type { GatewayOptions } from "../../../gateway/src/index.ts";
import { nodeEngine } from "../../../gateway/src/http/node/index.ts";
import { startGreenhouse, type TestGreenhouse } from "./greenhouse.ts";

/** Starts a greenhouse on node:http and node:http2. */
export function startOnNode(
  implementation: Parameters<typeof startGreenhouse>[0],
  options: Partial<GatewayOptions> = {},
  listenOptions: Parameters<typeof startGreenhouse>[2] = {},
): Promise<TestGreenhouse> {
  return startGreenhouse(implementation, { engine: nodeEngine, ...options }, listenOptions);
}

/** Server options for {@link nodeEngine} whose hooks all fail, and the error code that the server reports first. */
export function failingHooks(): {
  readonly options: Parameters<typeof nodeEngine.createHttp1Server>[0];
  readonly reported: Promise<string>;
} {
  const reported = Promise.withResolvers<string>();
  const options = {
    limits: defaultLimits,
    budget: new BacklogBudget(defaultLimits.backlogBytes),
    serve: fail,
    refuse: fail,
    countError: fail,
    report: (_error: unknown, { errorCode }: { readonly errorCode: string }) => reported.resolve(errorCode),
  };
  return { options, reported: reported.promise };
}

function fail(): never {
  throw new Error("defect");
}
