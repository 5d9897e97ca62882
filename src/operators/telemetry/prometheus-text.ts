import type { Attributes, HistogramPoint, MetricFamily } from "./metric-family.ts";

/** The media type of the text. */
export const prometheusType = "text/plain; version=0.0.4; charset=utf-8";

/**
 * Writes metrics as Prometheus' text, which its scrapers and those of others read.
 *
 * Names follow OpenTelemetry's rules for Prometheus: dots become underscores, the unit is spelled out at the end, and
 * counters end with `_total`.
 */
export function writePrometheus(families: readonly MetricFamily[]): string {
  return families
    .flatMap(linesOf)
    .map((line) => `${line}\n`)
    .join("");
}

/** Returns the name of a metric in Prometheus, such as `rpc_server_call_duration_seconds`, to which samples may add. */
export function prometheusName({ name, unit, kind }: Pick<MetricFamily, "name" | "unit" | "kind">): string {
  const suffix = unitSuffixes[unit];
  const plain = name.replaceAll(/[^a-zA-Z0-9]/g, "_");
  const withUnit = suffix === undefined || plain.endsWith(suffix) ? plain : plain + suffix;
  return kind === "counter" ? `${withUnit}_total` : withUnit;
}

const unitSuffixes: Readonly<Record<string, string>> = { s: "_seconds", By: "_bytes", "1": "_ratio" };

function linesOf(family: MetricFamily): string[] {
  const name = prometheusName(family);
  const samples =
    family.kind === "histogram"
      ? family.points.flatMap((point) => histogramLines(name, family.bounds, point))
      : family.points.map(({ attributes, value }) => `${name}${bracesOf(attributes)} ${value}`);
  return [`# HELP ${name} ${family.description}`, `# TYPE ${name} ${family.kind}`, ...samples];
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

// With a decimal point, as OpenMetrics prescribes: a bound must not change its name where a scraper converts.
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
