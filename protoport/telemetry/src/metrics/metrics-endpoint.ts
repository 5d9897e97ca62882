import { type Endpoint, readAccept } from "@protoport/gateway";
import type { Attributes } from "../conventions/index.ts";
import type { HistogramPoint, MetricFamily } from "./metrics.ts";

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

/** A text format for Prometheus metrics. */
type PrometheusFormat = "prometheus" | "openmetrics";

/** The media type of each format. */
const prometheusMediaTypes: Readonly<Record<PrometheusFormat, string>> = {
  prometheus: "text/plain; version=0.0.4; charset=utf-8",
  openmetrics: "application/openmetrics-text; version=1.0.0; charset=utf-8",
};

/**
 * Formats metrics in the Prometheus text format or in OpenMetrics 1.0. In OpenMetrics, a counter's family name does
 * not end in `_total`, and the last line is `# EOF`.
 *
 * Names follow OpenTelemetry's rules for Prometheus. Dots become underscores, the unit is appended, and counters end in
 * `_total`.
 */
export function formatPrometheus(families: readonly MetricFamily[], format: PrometheusFormat): string {
  const lines = families.flatMap((family) => metricLinesOf(family, format));
  return [...lines, ...(format === "openmetrics" ? ["# EOF"] : []), ""].join("\n");
}

/** Returns a metric's Prometheus name, such as `rpc_server_call_duration_seconds`, without sample suffixes. */
export function prometheusName({ name, unit, kind }: Pick<MetricFamily, "name" | "unit" | "kind">): string {
  const suffix = unitSuffixes[unit];
  const plainName = name.replaceAll(/[^a-zA-Z0-9]/g, "_");
  const withUnit = suffix === undefined || plainName.endsWith(suffix) ? plainName : plainName + suffix;
  return kind === "counter" ? `${withUnit}_total` : withUnit;
}

const unitSuffixes: Readonly<Record<string, string>> = { s: "_seconds", By: "_bytes", "1": "_ratio" };

function metricLinesOf(family: MetricFamily, format: PrometheusFormat): string[] {
  const name = prometheusName(family);
  const samples =
    family.kind === "histogram"
      ? family.points.flatMap((point) => histogramLines(name, family.bounds, point))
      : family.points.map(({ attributes, value }) => `${name}${formatLabels(attributes)} ${value}`);
  const isOpenMetrics = format === "openmetrics";
  // OpenMetrics omits the suffix `_total` in a counter's family name. Only the sample names have the suffix.
  const familyName = isOpenMetrics && family.kind === "counter" ? name.slice(0, -"_total".length) : name;
  const suffix = unitSuffixes[family.unit];
  const unit = isOpenMetrics && suffix !== undefined ? [`# UNIT ${familyName} ${suffix.slice(1)}`] : [];
  return [`# HELP ${familyName} ${family.description}`, `# TYPE ${familyName} ${family.kind}`, ...unit, ...samples];
}

function histogramLines(
  name: string,
  bounds: readonly number[],
  { attributes, counts, sum }: HistogramPoint,
): string[] {
  let count = 0;
  const buckets = counts.map((inBucket, bucket) => {
    count += inBucket;
    return `${name}_bucket${formatLabels({ ...attributes, le: boundText(bounds[bucket]) })} ${count}`;
  });
  return [
    ...buckets,
    `${name}_sum${formatLabels(attributes)} ${sum}`,
    `${name}_count${formatLabels(attributes)} ${count}`,
  ];
}

// OpenMetrics requires a decimal point in integer bounds, and the Prometheus text format accepts it.
function boundText(bound: number | undefined): string {
  if (bound === undefined) return "+Inf";
  return Number.isInteger(bound) ? `${bound}.0` : String(bound);
}

function formatLabels(attributes: Attributes): string {
  const labels = Object.entries(attributes).map(
    ([name, value]) => `${name.replaceAll(/[^a-zA-Z0-9]/g, "_")}="${escapeLabel(String(value))}"`,
  );
  return labels.length === 0 ? "" : `{${labels.join(",")}}`;
}

function escapeLabel(text: string): string {
  return text.replaceAll(/["\\\n]/g, (character) => (character === "\n" ? "\\n" : `\\${character}`));
}
