import type { Interceptor } from "@connectrpc/connect";
import type { GatewayOptions } from "../../../gateway/src/index.ts";
import { startGreenhouse, type TestGreenhouse } from "./greenhouse.ts";

/** Starts a greenhouse whose `ran` lists the calls of an interceptor and of the handler of WaterBed. */
export async function startWatched(
  options: Partial<GatewayOptions>,
  listenOptions?: Parameters<typeof startGreenhouse>[2],
): Promise<TestGreenhouse & { readonly ran: readonly string[] }> {
  const ran: string[] = [];
  const noting: Interceptor = (next) => (request) => {
    ran.push("interceptor");
    return next(request);
  };
  const waterBed = (): Record<string, never> => {
    ran.push("handler");
    return {};
  };
  const interceptors = [noting, ...(options.interceptors ?? [])];
  return Object.assign(await startGreenhouse({ waterBed }, { ...options, interceptors }, listenOptions), { ran });
}
