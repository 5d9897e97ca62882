import type { Attributes, HistogramPoint, MetricFamily, NumberPoint } from "./metric-family.ts";

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
  const lines: string[] = [];
  for (const family of families) writeFamily(family, form, lines);
  if (form === "openmetrics") lines.push("# EOF");
  lines.push("");
  return lines.join("\n");
}

/** Returns the name of a metric in Prometheus, such as `rpc_server_call_duration_seconds`, to which samples may add. */
export function prometheusName({ name, unit, kind }: Pick<MetricFamily, "name" | "unit" | "kind">): string {
  const suffix = unitSuffixes[unit];
  const plain = name.replaceAll(/[^a-zA-Z0-9]/g, "_");
  const withUnit = suffix === undefined || plain.endsWith(suffix) ? plain : plain + suffix;
  return kind === "counter" ? `${withUnit}_total` : withUnit;
}

const unitSuffixes: Readonly<Record<string, string>> = { s: "_seconds", By: "_bytes", "1": "_ratio" };

function writeFamily(family: MetricFamily, form: PrometheusForm, lines: string[]): void {
  const name = prometheusName(family);
  // OpenMetrics describes the family of a counter without the suffix of its samples.
  const described = form === "openmetrics" && family.kind === "counter" ? name.slice(0, -"_total".length) : name;
  lines.push(`# HELP ${described} ${family.description}`, `# TYPE ${described} ${family.kind}`);
  const suffix = unitSuffixes[family.unit];
  if (form === "openmetrics" && suffix !== undefined) lines.push(`# UNIT ${described} ${suffix.slice(1)}`);
  if (family.kind === "histogram") {
    for (const point of family.points) writeHistogram(name, family.bounds, point, lines);
  } else {
    for (const point of family.points) writeNumber(name, point, lines);
  }
}

function writeNumber(name: string, { attributes, value }: NumberPoint, lines: string[]): void {
  const labels = labelsOf(attributes);
  lines.push(`${name}${labels === "" ? "" : `{${labels}}`} ${value}`);
}

function writeHistogram(
  name: string,
  bounds: readonly number[],
  { attributes, counts, sum }: HistogramPoint,
  lines: string[],
): void {
  const labels = labelsOf(attributes);
  const before = labels === "" ? "" : `${labels},`;
  let count = 0;
  for (const [bucket, inBucket] of counts.entries()) {
    count += inBucket;
    lines.push(`${name}_bucket{${before}le="${boundText(bounds[bucket])}"} ${count}`);
  }
  const braces = labels === "" ? "" : `{${labels}}`;
  lines.push(`${name}_sum${braces} ${sum}`, `${name}_count${braces} ${count}`);
}

// OpenMetrics wants whole bounds with a decimal point, and both forms read it.
function boundText(bound: number | undefined): string {
  if (bound === undefined) return "+Inf";
  return Number.isInteger(bound) ? `${bound}.0` : String(bound);
}

function labelsOf(attributes: Attributes): string {
  return Object.entries(attributes)
    .map(([name, value]) => `${name.replaceAll(/[^a-zA-Z0-9]/g, "_")}="${escapeLabel(String(value))}"`)
    .join(",");
}

function escapeLabel(text: string): string {
  return text.replaceAll(/["\\\n]/g, (character) => (character === "\n" ? "\\n" : `\\${character}`));
}
