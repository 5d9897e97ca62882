import type { Endpoint } from "@plantstore/gateway/internal/serve";
import { readAccept } from "@plantstore/gateway/internal/protocols";
import type { MetricFamily } from "./metric-family.ts";
import { type PrometheusForm, prometheusTypes, writePrometheus } from "./prometheus-text.ts";

/**
 * Creates the endpoint `/metrics`, in the form that `Accept` asks for: OpenMetrics, or Prometheus' own.
 *
 * It is open to everyone who reaches it: serve it on an address of its own that clients of the service cannot reach.
 *
 * @param collect - returns the metrics as they are now; called for each request
 */
export function createMetricsEndpoint(
  collect: () => readonly MetricFamily[] | Promise<readonly MetricFamily[]>,
): Endpoint {
  return {
    path: "/metrics",
    open: true,
    answer: async ({ header }) => {
      const form = preferredForm(header.get("accept"));
      const body = writePrometheus(await collect(), form);
      return { httpStatus: 200, header: { "content-type": prometheusTypes[form], "cache-control": "no-store" }, body };
    },
  };
}

/** Returns Prometheus' own form unless `Accept` names and prefers OpenMetrics 1.0 (RFC 9110 §12.5.1). */
function preferredForm(accept: string | null): PrometheusForm {
  const quality = { prometheus: 0, openmetrics: 0 };
  for (const { name, parameters, weight } of readAccept(accept ?? "")) {
    const version = parameters.find((parameter) => parameter.startsWith("version=")) ?? openMetricsVersion;
    if (name === "text/plain") quality.prometheus = Math.max(quality.prometheus, weight);
    if (name === "application/openmetrics-text" && version === openMetricsVersion) {
      quality.openmetrics = Math.max(quality.openmetrics, weight);
    }
  }
  return quality.openmetrics > 0 && quality.openmetrics >= quality.prometheus ? "openmetrics" : "prometheus";
}

const openMetricsVersion = "version=1.0.0";
