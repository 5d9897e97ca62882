import { type CallFigures, measuredNow, maxRoundsDiffer, type ServerFigures } from "./figures.ts";
import { median, spreadOf } from "./summary.ts";
import { maxForeignLoad, type Turn, type Turns } from "./turns.ts";

const head = ["server", "CPU µs", "× floor", "requests/s", "p50/p99 ms", "RSS MB idle/loaded"];

/**
 * Summarises a comparison. Returns medians over all turns, including the ratio of the CPU time to the first server's
 * CPU time.
 */
export function toCallFigures(all: readonly Turns[]): CallFigures {
  const servers = all.map(({ subject, turns }) => {
    const middle = (figure: (turn: Turn) => number): number => median(turns.map(figure));
    return {
      name: subject.name,
      cpuUs: middle(({ cpuUs }) => cpuUs),
      timesFloor: middle(({ timesFloor }) => timesFloor),
      ...rangeOfRounds(turns),
      requestsPerS: Math.round(middle(({ requestsPerS }) => requestsPerS)),
      latencyUs: { p50: middle(({ latencyUs }) => latencyUs.p50), p99: middle(({ latencyUs }) => latencyUs.p99) },
      rssIdleBytes: middle(({ rssIdleBytes }) => rssIdleBytes),
      rssLoadedBytes: middle(({ rssLoadedBytes }) => rssLoadedBytes),
    };
  });
  const foreignLoad = Math.max(0, ...all.flatMap(({ turns }) => turns.map((turn) => turn.foreignLoad)));
  return { measured: measuredNow(), servers, foreignLoad };
}

/** Returns the lowest and the highest of the rounds' ratios to the floor, if the rounds differ. */
function rangeOfRounds(turns: readonly Turn[]): Pick<ServerFigures, "timesFloorRange"> {
  const rounds = Map.groupBy(turns, ({ round }) => round);
  const ratios = [...rounds.values()].map((all) => median(all.map(({ timesFloor }) => timesFloor)));
  const [lowest, highest] = [Math.min(...ratios), Math.max(...ratios)];
  return highest > lowest * (1 + maxRoundsDiffer) ? { timesFloorRange: [lowest, highest] } : {};
}

/** Returns a ratio to the floor with its range, if the rounds differ. */
function ratioOf({ timesFloor, timesFloorRange: range }: ServerFigures): string {
  const ratio = timesFloor.toFixed(2);
  return range === undefined ? ratio : `${ratio} (${range.map((bound) => bound.toFixed(2)).join(" to ")})`;
}

/** Returns a comparison as a Markdown table. @param nameOf - returns the first column's cells */
export function formatCalls(
  { servers }: CallFigures,
  firstHead: string = "server",
  nameOf: (name: string, at: number) => string = (name) => name,
): string {
  const rows = servers.map((server, at) => [
    nameOf(server.name, at),
    server.cpuUs.toFixed(1),
    ratioOf(server),
    server.requestsPerS.toLocaleString("en-US", { maximumSignificantDigits: 3 }),
    latencies(server.latencyUs),
    `${megabytes(server.rssIdleBytes)}/${megabytes(server.rssLoadedBytes)}`,
  ]);
  return formatRows([firstHead, ...head.slice(1)], rows);
}

/** Returns a comparison as a Markdown table, and a description of how much other processes disturbed the comparison. */
export function formatTable(all: readonly Turns[]): string {
  return `${formatCalls(toCallFigures(all))}\n\n${formatDisturbance(all)}`;
}

/** Returns p50 and p99 in ms. */
export function latencies({ p50, p99 }: { readonly p50: number; readonly p99: number }): string {
  return `${(p50 / 1_000).toFixed(2)}/${(p99 / 1_000).toFixed(2)}`;
}

/** Returns whether other processes disturbed most turns, so that the comparison is not recorded. */
export function isTooBusy(all: readonly Turns[]): boolean {
  const turns = all.flatMap((one) => one.turns);
  return turns.filter(({ foreignLoad }) => foreignLoad > maxForeignLoad).length * 2 > turns.length;
}

/** Describes how much other processes disturbed a comparison, and how far the ratios to the floor spread. */
function formatDisturbance(all: readonly Turns[]): string {
  const turns = all.flatMap((one) => one.turns);
  const disturbed = turns.filter(({ foreignLoad }) => foreignLoad > maxForeignLoad).length;
  const most = Math.max(0, ...turns.map(({ foreignLoad }) => foreignLoad));
  const spread = Math.max(0, ...all.map((one) => spreadOf(one.turns.map(({ timesFloor }) => timesFloor))));
  const verdict = isTooBusy(all) ? " The machine is too busy for a reliable result, which is not recorded." : "";
  return [
    `Other processes used more than ${percent(maxForeignLoad)} of the core in ${disturbed} of ${turns.length} turns,`,
    `${percent(most)} at most; the largest spread of the ratios of a server is ${percent(spread)}.${verdict}`,
  ].join(" ");
}

/** Returns rows of cells as a Markdown table. */
export function formatRows(header: readonly string[], rows: readonly (readonly string[])[]): string {
  const [first = "", ...rest] = [header, ...rows].map((cells) => `| ${cells.join(" | ")} |`);
  return [first, `|${"---|".repeat(header.length)}`, ...rest].join("\n");
}

/** Returns bytes in mebibytes, without decimals. */
export function megabytes(bytes: number): string {
  return (bytes / 1_048_576).toFixed(0);
}

/** Returns a share in percent, without decimals. */
export function percent(share: number): string {
  return `${(share * 100).toFixed(0)} %`;
}
