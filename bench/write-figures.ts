// Writes the bench's tables to the pages, each between two comments. Run the program as
// `npx node bench/write-figures.ts`.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type DeletionFigures, type Figures, ownLoggedName, ownName, ownSqliteName, readFigures } from "./figures.ts";
import {
  type CallFigures,
  type MemoryFigures,
  type RateFigures,
  ownName as protoportName,
  type StartFigures,
} from "../protoport/bench/figures.ts";
import { formatCalls, formatRows, latencies, megabytes, percent } from "../protoport/bench/table.ts";

const root = join(import.meta.dirname, "..");

/** The pages with the bench's tables. */
export const pages = [
  "docs/explanation/performance.md",
  "bench/README.md",
  "protoport/docs/explanation/performance.md",
] as const;

/** The text in a page instead of a table without figures. A test checks that no page contains this text. */
export const unmeasured: string = "not measured";

/** Number of messages in a stream. */
const streamedMessages = 10_000;

/**
 * The functions that return the blocks of a page, by the block's name in the page's comments. A block without figures
 * is `undefined`.
 */
const blocks: Readonly<Record<string, (figures: Figures) => string | undefined>> = {
  measured: ({ calls }) => calls?.["rest"] && measuredLine(calls["rest"]),
  "measured-books": ({ calls }) => calls?.["rest-get-book"] && measuredLine(calls["rest-get-book"]),
  rest: ({ calls }) => callTable(calls?.["rest"], "`DELETE /plants/7`, HTTP/1.1, 64 connections"),
  tools: ({ calls }) => columnsTable(calls, { "DeletePlant as a tool, HTTP/1.1, 64 connections": "mcp" }) ?? benchHint,
  grpc: ({ calls }) => callTable(calls?.["grpc"], "DeletePlant as gRPC, h2c, 8 connections of 32 streams"),
  "few-calls": ({ calls }) => columnsTable(calls, fewCalls),
  deployed: ({ calls }) => columnsTable(calls, deployedCalls) ?? benchHint,
  books: ({ calls }) => calls && bookTables(calls),
  messages: ({ calls }) => columnsTable(calls, largeMessages),
  clients: ({ calls }) => columnsTable(calls, clientCalls) ?? benchHint,
  proxies: ({ calls }) => columnsTable(calls, proxiedCalls, "CPU µs a call (× Envoy)", ownInBold) ?? benchHint,
  validation: ({ calls }) => columnsTable(calls, validatedCalls, "CPU µs a call (× without)", String) ?? benchHint,
  "json-streams": ({ calls }) => calls && jsonStreamTable(calls),
  rates: ({ rates }) => (rates ? rateTable(rates) : benchHint),
  starts: ({ starts }) => (starts ? startTable(starts) : benchHint),
  memory: ({ memory }) => (memory ? memoryTable(memory) : benchHint),
  deletions: ({ deletions }) => (deletions ? deletionTable(deletions) : benchHint),
  stalls: ({ stalls }) =>
    stalls &&
    formatRows(
      ["a small request at the same time", "ms at most"],
      stalls.map(({ name, ms }, at) => [nameOf(name, at), ms.toFixed(0)]),
    ),
};

/** Returns a page with its tables generated from the figures. Throws for an unknown name. */
export function renderPage(page: string, figures: Figures): string {
  return page.replace(
    /(<!-- figures: ([\w-]+) -->\n\n).*?(\n\n<!-- \/figures -->)/gs,
    (_whole, begin: string, name: string, end: string) => {
      const block = blocks[name];
      if (block === undefined) throw new Error(`unknown name of figures "${name}"`);
      return begin + (block(figures) ?? unmeasured) + end;
    },
  );
}

/** Writes the tables to all pages. */
export function writePages(): void {
  for (const page of pages) {
    const file = join(root, page);
    writeFileSync(file, renderPage(readFileSync(file, "utf8"), readFigures()));
  }
}

function nameOf(name: string, at: number): string {
  if (at === 0) return `${name}, the floor`;
  if (name === "node:net") return `${name}, the limit`;
  return ownInBold(name);
}

function ownInBold(name: string): string {
  return [protoportName, ownName, ownSqliteName, ownLoggedName].includes(name) ? `**${name}**` : name;
}

function measuredLine({ measured: { date, node, cores }, foreignLoad }: CallFigures): string {
  return `${dayOf(date)}, ${cores} cores, Node ${node}. Other processes used at most ${percent(foreignLoad)} of the server's core.`;
}

function dayOf(date: string): string {
  return new Date(date).toLocaleDateString("en-GB", { day: "numeric", month: "long", year: "numeric" });
}

function callTable(figures: CallFigures | undefined, title: string): string | undefined {
  return figures && formatCalls(figures, title, nameOf);
}

/** Scenarios by column heading. */
type Columns = Readonly<Record<string, string>>;

const fewCalls: Columns = {
  "gRPC, 8 connections of 8 streams": "grpc-8x8",
  "64 connections of 1": "grpc-64x1",
};

const deployedCalls: Columns = {
  "a new connection each, 16 at a time": "rest-new",
  "10 calls a connection": "rest-short",
  "TLS 1.3": "rest-tls",
};

const largeMessages: Columns = {
  "64 KiB both ways": "grpc-64k",
  "1 MiB both ways": "grpc-1m",
  "10,000 messages in a stream": "grpc-stream",
};

const restBooks: Columns = {
  "REST, a book": "rest-get-book",
  "a list of 10": "rest-list-10-books",
  "a list of 100": "rest-list-100-books",
  "a stream of 100": "rest-stream-books",
  "a book from the client": "rest-create-book",
  "100 from the client": "rest-import-books",
};

const grpcBooks: Columns = {
  "gRPC, a book": "grpc-get-book",
  "a list of 100": "grpc-list-books",
  "100 from the client": "grpc-import-books",
};

const clientCalls: Columns = { "16 bytes both ways": "client-small", "a book both ways": "client-book" };

const proxiedCalls: Columns = {
  "REST, a book": "proxy-rest",
  "a list of 100": "proxy-rest-list",
  "gRPC, a book": "proxy-grpc",
  "list of 100": "proxy-grpc-list",
};

const validatedCalls: Columns = { "JSON over HTTP/1.1": "validated-json", gRPC: "validated-grpc" };

function columnsTable(
  calls: Figures["calls"],
  columns: Columns,
  firstHead: string = "CPU µs a call (× floor)",
  title: typeof nameOf = nameOf,
): string | undefined {
  const all = Object.values(columns).map((scenario) => calls?.[scenario]);
  const [first] = all;
  if (first === undefined || all.includes(undefined)) return undefined;
  const head = [firstHead, ...Object.keys(columns)];
  const rows = first.servers.map(({ name }, at) => [
    title(name, at),
    ...all.map((figures) => {
      const server = figures?.servers.find((each) => each.name === name);
      if (server === undefined) return "–";
      const cpuUs = server.cpuUs.toLocaleString("en-US", { maximumSignificantDigits: 3 });
      return `${cpuUs} (${server.timesFloor.toFixed(2)})`;
    }),
  ]);
  return formatRows(head, rows);
}

/** The text that replaces a table without figures. */
const benchHint = "`npm run bench` measures them.";

/** Returns the tables for books, or a text that states how to measure them. */
function bookTables(calls: NonNullable<Figures["calls"]>): string {
  const tables = [restBooks, grpcBooks].map((columns) => columnsTable(calls, columns));
  return tables.includes(undefined) ? benchHint : tables.join("\n\n");
}

function jsonStreamTable(calls: NonNullable<Figures["calls"]>): string | undefined {
  const cell = (scenario: string, server: string): string | undefined => {
    const figures = calls[scenario]?.servers.find(({ name }) => name === server);
    // The bench does not count calls that take longer than a turn.
    return figures && (figures.requestsPerS > 0 ? (figures.cpuUs / streamedMessages).toFixed(2) : "–");
  };
  const rows = [
    ["from the server", cell("rest-stream", protoportName), ...connectCells("connect-stream")],
    ["from the client", cell("rest-lines", protoportName), ...connectCells("connect-lines")],
  ];
  function connectCells(scenario: string): (string | undefined)[] {
    return [cell(scenario, protoportName), cell(scenario, "connect-node")];
  }
  if (rows.some((row) => row.includes(undefined))) return undefined;
  return formatRows(
    ["CPU µs a message", "REST", "Connect", "Connect on connect-node"],
    rows.map((row) => row.map((text) => text ?? "")),
  );
}

function rateTable(rates: readonly RateFigures[]): string {
  const offered = [...new Set(rates.flatMap(({ steps }) => steps.map(({ requestsPerS }) => requestsPerS)))];
  const rows = rates.map(({ name, steps }, at) => [
    nameOf(name, at),
    ...offered.map((rate) => {
      const step = steps.find(({ requestsPerS }) => requestsPerS === rate);
      return step === undefined ? "–" : latencies(step.latencyUs);
    }),
  ]);
  const head = ["REST, p50/p99 ms at requests a second", ...offered.map((rate) => rate.toLocaleString("en-US"))];
  return formatRows(head, rows);
}

function startTable(starts: readonly StartFigures[]): string {
  const rows = starts.map(({ name, ms, timesFloor, cpuMs, rssBytes, rssTimesFloor }, at) => [
    nameOf(name, at),
    `${ms.toFixed(0)} (${timesFloor.toFixed(2)})`,
    cpuMs.toFixed(0),
    `${megabytes(rssBytes)} (${rssTimesFloor.toFixed(2)})`,
  ]);
  return formatRows(["", "first response ms (× floor)", "CPU ms", "RSS MB (× floor)"], rows);
}

function memoryTable(memory: readonly MemoryFigures[]): string {
  const rows = memory.map(({ name, rssBytes, idleConnectionBytes }, at) => [
    nameOf(name, at),
    rssBytes.map(megabytes).join("/"),
    (idleConnectionBytes / bytesPerKiB).toFixed(1),
  ]);
  return formatRows(["", "RSS MB at start/after 1/2 million calls", "KiB an idle connection"], rows);
}

const bytesPerKiB = 1_024;

function deletionTable(deletions: readonly DeletionFigures[]): string {
  const rows = deletions.map(({ name, loads }) => [
    name,
    ...loads.map(({ deletionsPerS, p99Us }) => {
      const perS = deletionsPerS.map((each) => each.toLocaleString("en-US", { maximumSignificantDigits: 3 }));
      return `${perS.join("–")} (${p99Us.map((us) => (us / 1_000).toFixed(1)).join("–")})`;
    }),
  ]);
  const callers =
    deletions[0]?.loads.map((load) => (load.callers === 1 ? "1 caller" : `${load.callers} callers`)) ?? [];
  return formatRows(["deletions/s (p99 ms)", ...callers], rows);
}

if (import.meta.main) writePages();
