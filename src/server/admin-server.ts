import { type BoundAddress, createGateway } from "@plantstore/gateway";
import type { Log } from "@plantstore/telemetry/logs";
import type { MetricFamily } from "@plantstore/telemetry/metrics";
import { type HttpEngineName, httpEngineOf } from "./http-engine.ts";
import type { AdminAddress } from "./setting-readers.ts";

/**
 * Serves `/metrics` on a separate address without a credential, and logs the address.
 *
 * @param collect - returns the current metrics
 * @param httpEngine - the HTTP implementation; pass the one that serves calls
 * @throws Error that names the setting when the address cannot be listened on
 */
export async function serveMetrics(
  at: AdminAddress,
  collect: () => readonly MetricFamily[] | Promise<readonly MetricFamily[]>,
  log: Pick<Log, "info">,
  httpEngine: HttpEngineName,
): Promise<BoundAddress & AsyncDisposable> {
  // Loaded on demand, so that a server without metrics does not load it.
  const { createMetricsEndpoint } = await import("@plantstore/telemetry/metrics");
  const admin = createGateway({
    routes: () => {},
    endpoints: [createMetricsEndpoint(collect)],
    ...httpEngineOf(httpEngine),
  });
  const bound = await admin.listen(at).catch((cause: unknown) => {
    const isInUse = cause instanceof Error && "code" in cause && cause.code === "EADDRINUSE";
    const message = cause instanceof Error ? cause.message : String(cause);
    const reason = isInUse ? `port ${at.port} of ${at.host} is in use; choose another port` : message;
    throw new Error(`cannot listen on PLANTSTORE_ADMIN_ADDRESS: ${reason}`, { cause });
  });
  log.info(bound, "serving metrics");
  return { ...bound, [Symbol.asyncDispose]: () => admin.close() };
}
