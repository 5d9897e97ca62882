import {
  ownLoggedName,
  ownName,
  ownNodeName,
  ownSqliteName,
  type CallFigures,
  type Figures,
  type ServerFigures,
} from "../protoport/bench/figures.ts";
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

/** The rows in the gateway's README. */
const all: readonly SummaryRow[] = [
  ...headline,
  { title: "Connect JSON, store in memory", scenario: "connect" },
  { title: "gRPC, 64 connections of one stream, store in memory", scenario: "grpc-64x1" },
  { title: "REST, a book of a dozen fields", scenario: "rest-get-book" },
  { title: "REST, a list of 100 books", scenario: "rest-list-100-books" },
  { title: "REST, 100 books from the client", scenario: "rest-import-books" },
  { title: "gRPC, a list of 100 books", scenario: "grpc-list-books" },
  { title: "gRPC, 100 books from the client", scenario: "grpc-import-books" },
  { title: "gRPC, 64 KiB each way", scenario: "grpc-64k" },
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
  return tablesOf(calls, headline);
}

/** Returns the tables in the gateway's README, like {@link headlineTables}. */
export function summaryTables(calls: Calls): string {
  return tablesOf(calls, all);
}

function tablesOf(calls: Calls, rows: readonly SummaryRow[]): string {
  return `${cpuTable(calls, rows)}\n\n${p99Table(calls, rows)}`;
}

/** Returns the table with CPU times. Scenarios without results are omitted. */
function cpuTable(calls: Calls, rows: readonly SummaryRow[]): string {
  const cells = rows.flatMap(({ title, scenario, own = ownName }) => {
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

function p99Table(calls: Calls, rows: readonly SummaryRow[]): string {
  const cells = rows.flatMap(({ title, scenario, own: server = ownName }) => {
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
const notPeers: ReadonlySet<string> = new Set([ownName, ownNodeName, ownSqliteName, ownLoggedName, "node:net"]);

function p99Ms({ latencyUs }: ServerFigures): string {
  return (latencyUs.p99 / 1_000).toFixed(2);
}
