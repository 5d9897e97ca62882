import { escape, svg, width } from "./svg.ts";

/** One line of a panel, with a point for each step. */
export interface Line {
  readonly name: string;
  readonly isOurs: boolean;
  readonly points: readonly { readonly x: number; readonly y: number }[];
}

/** Lines over the same two axes. */
export interface LinePanel {
  readonly title: string;
  readonly lines: readonly Line[];
}

const [nameWidth, nameHeight] = [110, 15];
const [left, plotWidth, plotHeight, titleHeight, panelGap] = [50, 560, 200, 40, 50];

const [xMin, xMax, yMin] = [5_000, 200_000, 0.05];

/** The highest latency that is drawn, in milliseconds: above it, the server is past what it can do. */
const yMax = 20;

/** The marks of both axes. The axes are logarithmic, because ratios matter. */
const xMarks = [5_000, 10_000, 20_000, 40_000, 80_000, 160_000];
const yMarks = [0.1, 0.3, 1, 3, 10];

/** Draws panels of lines below each other. */
export function drawLines(title: string, panels: readonly LinePanel[]): string {
  const parts = [`<text class="title" x="0" y="18">${escape(title)}</text>`];
  let top = titleHeight;
  for (const panel of panels) {
    parts.push(...drawPanel(panel, top));
    top += plotHeight + panelGap + titleHeight;
  }
  return svg(title, top - titleHeight, parts);
}

function drawPanel({ title, lines }: LinePanel, top: number): string[] {
  const bottom = top + 16 + plotHeight;
  const grid = [
    ...xMarks.map(
      (mark) =>
        `<text class="quiet" x="${xOf(mark)}" y="${bottom + 18}" text-anchor="middle">${mark.toLocaleString("en-US")}</text>`,
    ),
    ...yMarks.flatMap((mark) => [
      `<path class="axis" d="M${left} ${yOf(mark, bottom)} H${left + plotWidth}"/>`,
      `<text class="quiet" x="${left - 8}" y="${yOf(mark, bottom) + 4}" text-anchor="end">${mark}</text>`,
    ]),
  ];
  return [`<text class="quiet" x="0" y="${top + 8}">${escape(title)}</text>`, ...grid, ...drawAll(lines, bottom)];
}

function drawAll(lines: readonly Line[], bottom: number): string[] {
  const ends: { readonly x: number; readonly y: number }[] = [];
  return lines.flatMap(({ name, isOurs, points }) => {
    const shown = points.filter(({ y }) => y <= yMax);
    const last = shown.at(-1);
    if (last === undefined) return [];
    const path = shown.map(({ x, y }) => `${xOf(x)} ${yOf(y, bottom)}`).join(" L");
    // The names of lines that end close to each other are written below one another.
    const x = Math.min(xOf(last.x) + 8, width - nameWidth);
    let y = yOf(last.y, bottom) + 4;
    while (ends.some((end) => Math.abs(end.x - x) < nameWidth && Math.abs(end.y - y) < nameHeight)) y += nameHeight;
    ends.push({ x, y });
    return [
      `<path class="line${isOurs ? " ours" : ""}" d="M${path}"/>`,
      `<text x="${x}" y="${y}">${escape(name)}</text>`,
    ];
  });
}

function xOf(x: number): number {
  return Math.round(left + (Math.log(x / xMin) / Math.log(xMax / xMin)) * plotWidth);
}

function yOf(y: number, bottom: number): number {
  return Math.round(bottom - (Math.log(Math.max(y, yMin) / yMin) / Math.log(yMax / yMin)) * plotHeight);
}
