import { foreignLoadMax, type Measurement } from "./measure.ts";
import type { Rounds } from "./rounds.ts";
import { summarise } from "./summary.ts";

const head = [
  "server",
  "CPU µs",
  "least",
  "spread",
  "× floor",
  "requests/s",
  "p50 ms",
  "p99 ms",
  "RSS idle MB",
  "RSS loaded MB",
  "other load",
];

/** The rounds of a scenario as a table in Markdown: medians, and each CPU time as a multiple of the first server's. */
export function formatTable(rounds: readonly Rounds[]): string {
  const floor = summarise(rounds[0]?.measurements ?? [], cpu).median;
  const rows = rounds.map(({ subject, measurements }) => {
    const median = (figure: (measurement: Measurement) => number): number => summarise(measurements, figure).median;
    const { median: cpuUs, least, spread } = summarise(measurements, cpu);
    const foreign = Math.max(...measurements.map(({ foreignLoad }) => foreignLoad));
    return [
      subject.name,
      cpuUs.toFixed(1),
      least.toFixed(1),
      percent(spread),
      (cpuUs / floor).toFixed(2),
      String(Math.round(median(({ requestsPerS }) => requestsPerS))),
      (median(({ latencyUs }) => latencyUs.p50) / 1_000).toFixed(2),
      (median(({ latencyUs }) => latencyUs.p99) / 1_000).toFixed(2),
      megabytes(median(({ rssIdleBytes }) => rssIdleBytes)),
      megabytes(median(({ rssLoadedBytes }) => rssLoadedBytes)),
      `${percent(foreign)}${foreign > foreignLoadMax ? ", noisy" : ""}`,
    ];
  });
  return formatRows(head, rows);
}

/** Rows of cells as a table in Markdown. */
export function formatRows(header: readonly string[], rows: readonly (readonly string[])[]): string {
  return [header, header.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |`).join("\n");
}

/** Bytes as whole mebibytes. */
export function megabytes(bytes: number): string {
  return (bytes / 1_048_576).toFixed(0);
}

function cpu(measurement: Measurement): number {
  return measurement.cpuUsPerRequest;
}

function percent(share: number): string {
  return `${(share * 100).toFixed(0)} %`;
}
