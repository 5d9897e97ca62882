import type { Measurement } from "./measure.ts";

/** Measurements as a table in Markdown; the first one is the floor of the ratios. */
export function formatTable(measurements: ReadonlyMap<string, Measurement>): string {
  const floor = [...measurements.values()][0]?.cpuUsPerRequest ?? Number.NaN;
  const rows = [...measurements].map(([name, seen]) => [
    name,
    seen.cpuUsPerRequest.toFixed(1),
    `${(seen.cpuUsPerRequest / floor).toFixed(2)}x`,
    String(Math.round(seen.requestsPerS)),
    (seen.latencyUs.p50 / 1_000).toFixed(2),
    (seen.latencyUs.p99 / 1_000).toFixed(2),
    megabytes(seen.rssIdleBytes),
    megabytes(seen.rssLoadedBytes),
    `${(seen.foreignLoad * 100).toFixed(0)} %`,
  ]);
  const head = [
    "server",
    "CPU µs",
    "floor",
    "requests/s",
    "p50 ms",
    "p99 ms",
    "RSS idle MB",
    "RSS loaded MB",
    "other load",
  ];
  return [head, head.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |`).join("\n");
}

function megabytes(bytes: number): string {
  return (bytes / 1_048_576).toFixed(0);
}
