import type { Endpoint } from "@plantstore/gateway";
import type { MetricFamily } from "./metric-family.ts";
import { prometheusType, writePrometheus } from "./prometheus-text.ts";

/**
 * Creates the endpoint `/metrics`, in Prometheus' text.
 *
 * It is open to everyone who reaches it: serve it on an address of its own that clients of the service cannot reach.
 *
 * @param collect - returns the metrics as they are now; called for each request
 */
export function createMetricsEndpoint(
  collect: () => readonly MetricFamily[] | Promise<readonly MetricFamily[]>,
): Endpoint {
  const header = { "content-type": prometheusType, "cache-control": "no-store" };
  return {
    path: "/metrics",
    open: true,
    answer: async () => ({ httpStatus: 200, header, body: writePrometheus(await collect()) }),
  };
}
