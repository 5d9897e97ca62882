// Draws the pictures of README.md and docs/ from the tables of the docs, so that a picture says what its page says:
//   npx node tools/draw-pictures.ts
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Figures, type RateFigures, readFigures } from "../bench/figures.ts";
import { drawLines, type Line } from "./draw-lines.ts";
import { escape, svg } from "./svg.ts";

const root = join(import.meta.dirname, "..");
const folder = join(root, "docs/pictures");

/** Returns the pictures by file name, as they follow from the present pages. */
export function drawPictures(): Readonly<Record<string, string>> {
  const performance = readPage("docs/performance.md");
  const storage = readPage("docs/storage.md");
  const calls: readonly Panel[] = [
    { title: "REST, HTTP/1.1", bars: barsOf(performance, "| `DELETE /plants/7`, HTTP/1.1") },
    { title: "Connect JSON, HTTP/1.1", bars: barsOf(performance, "| DeletePlant as Connect JSON") },
    { title: "gRPC, h2c", bars: barsOf(performance, "| DeletePlant as gRPC, h2c, 8 connections of 32") },
  ];
  const stores: readonly Panel[] = [{ title: "256 callers at once", bars: barsOf(storage, "| | deletions/s | p50") }];
  return {
    "cost.svg": drawBars("Server CPU of one call, in µs", calls),
    ...drawRates(readFigures()),
    "storage.svg": drawBars("Durable deletions a second", stores),
    "way.svg": drawWay(readPage("docs/architecture.md")),
  };
}

interface Bar {
  readonly name: string;
  readonly figure: number;
  /** The figure as it is written in the page. */
  readonly text: string;
}

interface Panel {
  readonly title: string;
  readonly bars: readonly Bar[];
}

function readPage(page: string): string {
  return readFileSync(join(root, page), "utf8");
}

/** Returns a bar for each row of the table whose header begins with a text; for a range, its middle. */
function barsOf(page: string, header: string): Bar[] {
  const lines = page.split("\n");
  const start = lines.findIndex((line) => line.startsWith(header));
  if (start < 0) throw new Error(`no table begins with ${header}`);
  const length = lines.slice(start).findIndex((line) => !line.startsWith("|"));
  return lines.slice(start + 2, start + length).map((line) => {
    const [, cell = "", text = ""] = line.split("|").map((each) => each.trim().replaceAll(/[*`]/g, ""));
    const name = cell.replace(" on the same machine", "");
    const ends = text
      .replaceAll(",", "")
      .split("–")
      .map((end) => Number.parseFloat(end));
    return { name, text, figure: ends.reduce((sum, end) => sum + end, 0) / ends.length };
  });
}

const nameWidth = 250;
const barWidth = 380;
const rowHeight = 22;

/** Draws panels of bars to one linear scale: a logarithmic one would flatter the long bars. */
function drawBars(title: string, panels: readonly Panel[]): string {
  const longest = Math.max(...panels.flatMap(({ bars }) => bars.map(({ figure }) => figure)));
  const parts: string[] = [`<text class="title" x="0" y="18">${escape(title)}</text>`];
  let y = 34;
  for (const { title: name, bars } of panels) {
    y += rowHeight;
    parts.push(`<text class="quiet" x="0" y="${y}">${escape(name)}</text>`);
    for (const bar of bars) {
      y += rowHeight;
      const length = Math.max(1, Math.round((bar.figure / longest) * barWidth));
      parts.push(
        `<text x="${nameWidth - 10}" y="${y}" text-anchor="end">${escape(bar.name)}</text>`,
        `<rect class="bar${isOurs(bar.name) ? " ours" : ""}" x="${nameWidth}" y="${y - 12}" width="${length}" height="15" rx="2"/>`,
        `<text x="${nameWidth + length + 8}" y="${y}">${escape(bar.text)}</text>`,
      );
    }
    y += rowHeight / 2;
  }
  return svg(title, y, parts);
}

// In the figures of storage all rows are ours, but "one by one" is what the store is compared with.
function isOurs(name: string): boolean {
  return name === "plantstore" || (/^(SQLite|PostgreSQL)/.test(name) && !name.includes("one by one"));
}

/** Draws latency against load, if that was measured. */
function drawRates({ rates }: Figures): Readonly<Record<string, string>> {
  const { rest, grpc } = rates ?? {};
  if (rest === undefined || grpc === undefined) return {};
  const panels = [
    { title: "REST, HTTP/1.1, 64 connections", lines: rest.map(lineOf) },
    { title: "gRPC, h2c, 8 connections of 32 streams", lines: grpc.map(lineOf) },
  ];
  return { "latency.svg": drawLines("p99 of the latency, in ms, at so many requests a second", panels) };
}

function lineOf({ name, steps }: RateFigures): Line {
  const points = steps.map(({ requestsPerS, latencyUs }) => ({ x: requestsPerS, y: latencyUs.p99 / 1_000 }));
  return { name, isOurs: isOurs(name), points };
}

/** What each room does to a request, in the order in which it goes through them. */
const stations: readonly (readonly [room: string, does: string])[] = [
  ["gateway/carriers/", "accept, read the header"],
  ["gateway/calls/", "match the path, admit, run the call"],
  ["gateway/protocols/", "read the message, write the answer"],
  ["plants/", "delete, once it is on disk"],
];
const helpers: Readonly<Record<string, string>> = {
  "gateway/carriers/": "http1, http2",
  "gateway/calls/": "auth, operations",
  "gateway/protocols/": "rest, json",
  "plants/": "SQL stores",
};

/** Draws the rooms on the way of a request, with the numbers of lines in docs/architecture.md. */
function drawWay(architecture: string): string {
  const [boxWidth, gap, top] = [172, 24, 40];
  const parts = [
    '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">' +
      '<path d="M0 0 L8 4 L0 8 z"/></marker></defs>',
    '<text class="title" x="0" y="18">From the bytes of a request to the plant, and back</text>',
  ];
  for (const [at, [room, does]] of stations.entries()) {
    const counts = architecture.matchAll(new RegExp(`^\\| \`(?:\\w+/)?${room}(?:\\w+/)?\` \\|.*\\| (\\d+) \\|$`, "gm"));
    const lines = [...counts].reduce((sum, [, count]) => sum + Number(count), 0);
    if (lines === 0) throw new Error(`docs/architecture.md does not list ${room}`);
    const x = at * (boxWidth + gap);
    parts.push(
      `<rect class="room" x="${x + 0.5}" y="${top}.5" width="${boxWidth - 1}" height="122" rx="6"/>`,
      `<text class="title" x="${x + 12}" y="${top + 26}">${room.replace("gateway/", "").replace("/", "")}</text>`,
      ...wrap(does, 21).map((text, line) => `<text x="${x + 12}" y="${top + 48 + line * 17}">${escape(text)}</text>`),
      `<text class="quiet" x="${x + 12}" y="${top + 92}">with ${helpers[room] ?? ""}</text>`,
      `<text class="quiet" x="${x + 12}" y="${top + 111}">${lines} lines</text>`,
    );
    if (at === 0) continue;
    const [from, to] = [x - gap + 3, x - 3];
    parts.push(
      `<path class="arrow" d="M${from} ${top + 40} H${to}"/>`,
      `<path class="arrow" d="M${to} ${top + 70} H${from}"/>`,
    );
  }
  return svg("The way of a request", top + 130, parts);
}

function wrap(text: string, most: number): string[] {
  return text.split(" ").reduce<string[]>((lines, word) => {
    const last = lines.at(-1);
    if (last === undefined || last.length + word.length >= most) return [...lines, word];
    return [...lines.slice(0, -1), `${last} ${word}`];
  }, []);
}

/** Draws all pictures, and writes them into docs/. */
export function writePictures(): void {
  mkdirSync(folder, { recursive: true });
  for (const [name, picture] of Object.entries(drawPictures())) writeFileSync(join(folder, name), picture);
}

if (import.meta.main) writePictures();
