import { median, summarise } from "./summary.ts";
import { foreignLoadMax, type Turn, type Turns } from "./turns.ts";

const head = [
  "server",
  "CPU µs",
  "least",
  "× floor",
  "least × floor",
  "spread of × floor",
  "requests/s",
  "p50 ms",
  "p99 ms",
  "RSS idle MB",
  "RSS loaded MB",
];

/**
 * A comparison as a table in Markdown: medians over all turns, and the ratio of CPU time to the first server's, turn by
 * turn. "Least × floor" is the ratio of the two least times. Below it, whether the machine was too busy to tell.
 */
export function formatTable(all: readonly Turns[]): string {
  const floorLeast = summarise(all[0]?.turns ?? [], ({ cpuUs }) => cpuUs).least;
  const rows = all.map(({ subject, turns }) => {
    const middle = (figure: (turn: Turn) => number): number => median(turns.map(figure));
    const cpu = summarise(turns, ({ cpuUs }) => cpuUs);
    const ratio = summarise(turns, ({ timesFloor }) => timesFloor);
    return [
      subject.name,
      cpu.median.toFixed(1),
      cpu.least.toFixed(1),
      ratio.median.toFixed(2),
      (cpu.least / floorLeast).toFixed(2),
      percent(ratio.spread),
      String(Math.round(middle(({ requestsPerS }) => requestsPerS))),
      (middle(({ latencyUs }) => latencyUs.p50) / 1_000).toFixed(2),
      (middle(({ latencyUs }) => latencyUs.p99) / 1_000).toFixed(2),
      megabytes(middle(({ rssIdleBytes }) => rssIdleBytes)),
      megabytes(middle(({ rssLoadedBytes }) => rssLoadedBytes)),
    ];
  });
  return `${formatRows(head, rows)}\n\n${formatQuiet(all)}`;
}

function formatQuiet(all: readonly Turns[]): string {
  const turns = all.flatMap((one) => one.turns);
  const disturbed = turns.filter(({ foreignLoad }) => foreignLoad > foreignLoadMax).length;
  const most = Math.max(0, ...turns.map(({ foreignLoad }) => foreignLoad));
  const verdict = disturbed * 2 > turns.length ? " The machine is too busy to tell." : "";
  return `Others took more than ${percent(foreignLoadMax)} of the core in ${disturbed} of ${turns.length} turns, ${percent(most)} at most.${verdict}`;
}

/** Rows of cells as a table in Markdown. */
export function formatRows(header: readonly string[], rows: readonly (readonly string[])[]): string {
  return [header, header.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |`).join("\n");
}

/** Bytes as whole mebibytes. */
export function megabytes(bytes: number): string {
  return (bytes / 1_048_576).toFixed(0);
}

function percent(share: number): string {
  return `${(share * 100).toFixed(0)} %`;
}
