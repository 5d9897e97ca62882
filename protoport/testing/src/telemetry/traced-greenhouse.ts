import type { ServiceImpl } from "@connectrpc/connect";
import { expect } from "vitest";
import { GreenhouseService } from "../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import type { CompletedRequest, GatewayOptions } from "../../../gateway/src/index.ts";
import { type TracingOptions, withOpenTelemetry } from "../../../telemetry/src/opentelemetry/index.ts";
import type { Field, HttpRequest } from "../http/exchange.ts";
import { startGreenhouse, type TestGreenhouse } from "../gateway/greenhouse.ts";
import type { TestListenOptions } from "../gateway/listen-for-tests.ts";

/** A caller's trace and span. */
export const caller = { traceId: "0af7651916cd43dd8448eb211c80319c", spanId: "b7ad6b7169203331" };
export const traceparent: Field = ["traceparent", `00-${caller.traceId}-${caller.spanId}-01`];
/** A REST request for a sensor's reading. */
export const reading: HttpRequest = { httpMethod: "GET", path: "/sensors/7/reading", header: [] };
/** A greenhouse with OpenTelemetry, and the errors passed to `onFault`. */
type TracedGreenhouse = Omit<TestGreenhouse, "completedRequests"> & { readonly faults: readonly unknown[] };

interface TracedOptions {
  readonly options?: Partial<GatewayOptions>;
  readonly tracing?: TracingOptions;
  readonly listen?: TestListenOptions;
}

export async function startTraced(
  implementation: Partial<ServiceImpl<typeof GreenhouseService>>,
  { options = {}, tracing, listen }: TracedOptions = {},
): Promise<TracedGreenhouse> {
  const faults: unknown[] = [];
  const completedRequests: CompletedRequest[] = [];
  const untraced: GatewayOptions = {
    routes: (router) => router.service(GreenhouseService, implementation),
    onFault: (error) => void faults.push(error),
    ...options,
    onResponse: (request) => {
      completedRequests.push(request);
      return options.onResponse?.(request);
    },
  };
  const greenhouse = await startGreenhouse({}, withOpenTelemetry(untraced, tracing), listen);
  const completed = async (count: number): Promise<CompletedRequest> => {
    await expect.poll(() => completedRequests.length).toBeGreaterThanOrEqual(count);
    return completedRequests[count - 1] ?? greenhouse.completed(count);
  };
  return { ...greenhouse, faults, completed };
}
