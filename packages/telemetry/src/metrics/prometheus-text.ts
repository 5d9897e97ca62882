import type { Attributes } from "../conventions/index.ts";
import type { HistogramPoint, MetricFamily } from "./metric-family.ts";

/** A text form of metrics that Prometheus reads. */
export type PrometheusForm = "prometheus" | "openmetrics";

/** The media type of each form. */
export const prometheusTypes: Readonly<Record<PrometheusForm, string>> = {
  prometheus: "text/plain; version=0.0.4; charset=utf-8",
  openmetrics: "application/openmetrics-text; version=1.0.0; charset=utf-8",
};

/**
 * Writes metrics as text: in Prometheus' own form, or in that of OpenMetrics 1.0, which describes counters by another
 * name and has a last line.
 *
 * Names follow OpenTelemetry's rules for Prometheus: dots become underscores, the unit is spelled out at the end, and
 * counters end with `_total`.
 */
export function writePrometheus(families: readonly MetricFamily[], form: PrometheusForm): string {
  const lines = families.flatMap((family) => linesOf(family, form));
  return [...lines, ...(form === "openmetrics" ? ["# EOF"] : []), ""].join("\n");
}

/** Returns the name of a metric in Prometheus, such as `rpc_server_call_duration_seconds`, to which samples may add. */
export function prometheusName({ name, unit, kind }: Pick<MetricFamily, "name" | "unit" | "kind">): string {
  const suffix = unitSuffixes[unit];
  const plain = name.replaceAll(/[^a-zA-Z0-9]/g, "_");
  const withUnit = suffix === undefined || plain.endsWith(suffix) ? plain : plain + suffix;
  return kind === "counter" ? `${withUnit}_total` : withUnit;
}

const unitSuffixes: Readonly<Record<string, string>> = { s: "_seconds", By: "_bytes", "1": "_ratio" };

function linesOf(family: MetricFamily, form: PrometheusForm): string[] {
  const name = prometheusName(family);
  const samples =
    family.kind === "histogram"
      ? family.points.flatMap((point) => histogramLines(name, family.bounds, point))
      : family.points.map(({ attributes, value }) => `${name}${bracesOf(attributes)} ${value}`);
  const isOpen = form === "openmetrics";
  // OpenMetrics describes the family of a counter without the suffix of its samples.
  const described = isOpen && family.kind === "counter" ? name.slice(0, -"_total".length) : name;
  const suffix = unitSuffixes[family.unit];
  const unit = isOpen && suffix !== undefined ? [`# UNIT ${described} ${suffix.slice(1)}`] : [];
  return [`# HELP ${described} ${family.description}`, `# TYPE ${described} ${family.kind}`, ...unit, ...samples];
}

function histogramLines(
  name: string,
  bounds: readonly number[],
  { attributes, counts, sum }: HistogramPoint,
): string[] {
  let count = 0;
  const buckets = counts.map((inBucket, bucket) => {
    count += inBucket;
    return `${name}_bucket${bracesOf({ ...attributes, le: boundText(bounds[bucket]) })} ${count}`;
  });
  return [...buckets, `${name}_sum${bracesOf(attributes)} ${sum}`, `${name}_count${bracesOf(attributes)} ${count}`];
}

// OpenMetrics wants whole bounds with a decimal point, and both forms read it.
function boundText(bound: number | undefined): string {
  if (bound === undefined) return "+Inf";
  return Number.isInteger(bound) ? `${bound}.0` : String(bound);
}

function bracesOf(attributes: Attributes): string {
  const labels = Object.entries(attributes).map(
    ([name, value]) => `${name.replaceAll(/[^a-zA-Z0-9]/g, "_")}="${escapeLabel(String(value))}"`,
  );
  return labels.length === 0 ? "" : `{${labels.join(",")}}`;
}

function escapeLabel(text: string): string {
  return text.replaceAll(/["\\\n]/g, (character) => (character === "\n" ? "\\n" : `\\${character}`));
}
