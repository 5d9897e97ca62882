import { type BoundAddress, createGateway } from "@plantstore/gateway";
import type { Log } from "@plantstore/telemetry/logs";
import type { MetricFamily } from "@plantstore/telemetry/metrics";
import { type HttpEngineName, httpEngineOf } from "./http-engine.ts";
import type { AdminAddress } from "./setting-readers.ts";

/**
 * Serves `/metrics` on an address of its own, without a credential, and logs where.
 *
 * @param collect - returns the metrics as they are now
 * @param httpEngine - the HTTP that serves them: that of the calls
 * @throws Error naming the address when it cannot be listened on
 */
export async function serveMetrics(
  at: AdminAddress,
  collect: () => readonly MetricFamily[] | Promise<readonly MetricFamily[]>,
  log: Pick<Log, "info">,
  httpEngine: HttpEngineName,
): Promise<BoundAddress & AsyncDisposable> {
  // Loaded on demand, so that a server without metrics does not pay for it.
  const { createMetricsEndpoint } = await import("@plantstore/telemetry/metrics");
  const admin = createGateway({
    routes: () => {},
    endpoints: [createMetricsEndpoint(collect)],
    ...httpEngineOf(httpEngine),
  });
  const bound = await admin.listen(at).catch((cause: unknown) => {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new Error(`cannot listen on PLANTSTORE_ADMIN_ADDRESS: ${reason}`, { cause });
  });
  log.info(bound, "serving metrics");
  return { ...bound, [Symbol.asyncDispose]: () => admin.close() };
}
