// Draws the pictures of README.md and docs/ from the tables of the docs, so that a picture says what its page says:
//   npx node tools/draw-pictures.ts
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

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
  const servers = readPage("conformance/README.md");
  const [must = [], faults = [], should = []] = [3, 4, 6].map((column) => barsOf(servers, "| server |", column));
  const cases: readonly Panel[] = [
    {
      title: "must: a standard says so (in brackets those that are refused, but with 5xx)",
      bars: must.map((bar, at) => withFaults(bar, faults[at])),
    },
    { title: "should: a standard recommends it, or its neighbours say so", bars: should },
  ];
  return {
    "cost.svg": drawBars("Server CPU of one call, in µs", calls),
    "storage.svg": drawBars("Durable deletions a second", stores),
    "transcoding.svg": drawBars("Cases of google.api.http that are not kept", cases),
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

/**
 * Returns a bar for each row of the table whose header begins with a text, from a column of it, where that of the names
 * is 1; for a range, its middle.
 */
function barsOf(page: string, header: string, column = 2): Bar[] {
  const lines = page.split("\n");
  const start = lines.findIndex((line) => line.startsWith(header));
  if (start < 0) throw new Error(`no table begins with ${header}`);
  const length = lines.slice(start).findIndex((line) => !line.startsWith("|"));
  return lines.slice(start + 2, start + length).map((line) => {
    const cells = line.split("|").map((each) => each.trim().replaceAll(/[*`]/g, ""));
    const text = cells[column] ?? "";
    const name = (cells[1] ?? "").replace(/ on the same machine|, before grpc-go$/, "");
    const ends = text
      .replaceAll(",", "")
      .split("–")
      .map((end) => Number.parseFloat(end));
    return { name, text, figure: ends.reduce((sum, end) => sum + end, 0) / ends.length };
  });
}

/** Adds to a bar of failures how many of them are faults of the server. */
function withFaults(bar: Bar, faults: Bar | undefined): Bar {
  return faults === undefined || faults.figure === 0 ? bar : { ...bar, text: `${bar.text} (${faults.text})` };
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
  return /^(plantstore$|@plantstore)/.test(name) || (/^(SQLite|PostgreSQL)/.test(name) && !name.includes("one by one"));
}

/** The width of every picture, in pixels. */
const width = 760;

// Colours that can be told apart on white and on black alike.
const style = `<style>
text { font: 13px system-ui, sans-serif; fill: #24292f }
.title { font-weight: 600; font-size: 15px }
.quiet { fill: #57606a }
.bar { fill: #8c959f }
.ours { fill: #1a7f37 }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 }
  .quiet { fill: #9198a1 }
  .bar { fill: #6e7681 }
  .ours { fill: #3fb950 }
}
</style>`;

/** Returns an SVG image of {@link width} by `height` pixels, made of parts. */
function svg(title: string, height: number, parts: readonly string[]): string {
  const size = `width="${width}" height="${height}" viewBox="0 0 ${width} ${height}"`;
  const head = `<svg xmlns="http://www.w3.org/2000/svg" ${size} role="img" aria-label="${escape(title)}">`;
  return [head, style, ...parts, "</svg>", ""].join("\n");
}

/** Escapes a text for XML. */
function escape(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&quot;");
}

/** Draws all pictures, and writes them into docs/. */
export function writePictures(): void {
  mkdirSync(folder, { recursive: true });
  for (const [name, picture] of Object.entries(drawPictures())) writeFileSync(join(folder, name), picture);
}

if (import.meta.main) writePictures();
