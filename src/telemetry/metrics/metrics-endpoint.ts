import type { Endpoint } from "../../gateway/index.ts";
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
  for (const range of (accept ?? "").toLowerCase().split(",")) {
    const [type = "", ...parameters] = range.split(";").map((part) => part.trim());
    const version = valueOf(parameters, "version");
    const q = Number(valueOf(parameters, "q") ?? 1);
    if (type === "text/plain") quality.prometheus = Math.max(quality.prometheus, q);
    if (type === "application/openmetrics-text" && (version === undefined || version === "1.0.0")) {
      quality.openmetrics = Math.max(quality.openmetrics, q);
    }
  }
  return quality.openmetrics > 0 && quality.openmetrics >= quality.prometheus ? "openmetrics" : "prometheus";
}

function valueOf(parameters: readonly string[], name: string): string | undefined {
  return parameters.find((parameter) => parameter.startsWith(`${name}=`))?.slice(name.length + 1);
}
