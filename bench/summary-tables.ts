import { type Figures, ownLoggedName, ownName, ownSqliteName } from "./figures.ts";
import type { CallFigures, ServerFigures } from "../protoport/bench/figures.ts";
import { formatRows } from "../protoport/bench/table.ts";

type Calls = NonNullable<Figures["calls"]>;

/** A row in a summary, with the row's scenario, and the server in the first column. */
interface SummaryRow {
  readonly title: string;
  readonly scenario: string;
  /** The server in the first column. The default is {@link ownName}. */
  readonly own?: string;
}

/** The rows in the tables of the project's README.md. */
const headline: readonly SummaryRow[] = [
  { title: "REST, `DELETE /plants/7`, store in memory", scenario: "rest" },
  { title: "the same, store in an SQLite file", scenario: "rest", own: ownSqliteName },
  { title: "gRPC, 8 connections of 32 streams, store in memory", scenario: "grpc" },
];

/** The servers in the other columns. */
const columns: Readonly<Record<string, RegExp>> = {
  "bare node": /^node:http/,
  fastify: /^fastify/,
  "grpc-js": /^grpc-js$/,
  "connect-node": /^connect-node$/,
};

/** Returns the README.md tables, with server CPU, and scenarios in which a peer has a lower p99. */
export function headlineTables(calls: Calls): string {
  return `${cpuTable(calls)}\n\n${p99Table(calls)}`;
}

/** Returns the table with CPU times. Scenarios without results are omitted. */
function cpuTable(calls: Calls): string {
  const cells = headline.flatMap(({ title, scenario, own = ownName }) => {
    const servers = calls[scenario]?.servers ?? [];
    const cpuUs = (isSelected: (name: string) => boolean): string =>
      servers.find(({ name }) => isSelected(name))?.cpuUs.toFixed(1) ?? "–";
    if (servers.every(({ name }) => name !== own)) return [];
    // The other servers keep their plants in memory.
    const others = Object.values(columns).map((name) => (own === ownName ? cpuUs((each) => name.test(each)) : "–"));
    return [[title, cpuUs((name) => name === own), ...others]];
  });
  return formatRows(["server CPU per call, µs", ownName, ...Object.keys(columns)], cells);
}

function p99Table(calls: Calls): string {
  const cells = headline.flatMap(({ title, scenario, own: server = ownName }) => {
    const own = calls[scenario]?.servers.find(({ name }) => name === server);
    const faster = own === undefined || server !== ownName ? [] : fasterPeers(calls[scenario], own);
    if (own === undefined || faster.length === 0) return [];
    return [[title, p99Ms(own), faster.map((peer) => `${p99Ms(peer)} ${peer.name}`).join("; ")]];
  });
  if (cells.length === 0) return "No peer has a lower p99 latency.";
  return formatRows(["p99 latency where a peer's is lower, ms", ownName, "peers"], cells);
}

/** Returns the servers with a lower p99. The server with the lowest p99 comes first. */
function fasterPeers(figures: CallFigures | undefined, own: ServerFigures): readonly ServerFigures[] {
  return (figures?.servers ?? [])
    .filter(({ name, latencyUs }) => !notPeers.has(name) && latencyUs.p99 < own.latencyUs.p99)
    .toSorted((one, other) => one.latencyUs.p99 - other.latencyUs.p99);
}

/** The servers that are not peers, such as node:net, which writes a prepared response without handling the request. */
const notPeers: ReadonlySet<string> = new Set([ownName, ownSqliteName, ownLoggedName, "node:net"]);

function p99Ms({ latencyUs }: ServerFigures): string {
  return (latencyUs.p99 / 1_000).toFixed(2);
}
