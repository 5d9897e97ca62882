import { type Endpoint, readAccept } from "@protoport/gateway";
import type { MetricFamily } from "./metric-family.ts";
import { type PrometheusFormat, prometheusMediaTypes, formatPrometheus } from "./prometheus-text.ts";

/**
 * Creates the endpoint `/metrics`. The response is in OpenMetrics or in the Prometheus text format, as `Accept`
 * prefers.
 *
 * The endpoint requires no authentication, so serve it on a separate address that the service's clients cannot reach.
 *
 * @param collect - returns the current metrics. The endpoint calls the function for each request
 */
export function createMetricsEndpoint(
  collect: () => readonly MetricFamily[] | Promise<readonly MetricFamily[]>,
): Endpoint {
  return {
    path: "/metrics",
    open: true,
    handle: async ({ header }) => {
      const format = preferredFormat(header.get("accept"));
      const body = formatPrometheus(await collect(), format);
      return {
        httpStatus: 200,
        header: { "content-type": prometheusMediaTypes[format], "cache-control": "no-store" },
        body,
      };
    },
  };
}

/** Returns the Prometheus text format unless `Accept` prefers OpenMetrics 1.0 (RFC 9110 §12.5.1). */
function preferredFormat(accept: string | null): PrometheusFormat {
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
