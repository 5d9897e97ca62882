import { countsOf, type Measured } from "./table.ts";

/** Returns the table as an SVG picture, with a bar for each server's failed cases. */
export function pictureOf(measured: readonly Measured[]): string {
  const counts = countsOf(measured);
  const panels = [
    {
      heading: "must: a standard says so (in brackets those that are refused, but with 5xx)",
      bars: counts.map(({ name, must: [, failed], faults }) => ({ name, failed, faults })),
    },
    {
      heading: "should: a standard recommends it, or its neighbours say so",
      bars: counts.map(({ name, should: [, failed] }) => ({ name, failed, faults: 0 })),
    },
  ];
  // The scale is linear, because a logarithmic scale would flatter the long bars.
  const most = Math.max(...panels.flatMap(({ bars }) => bars.map(({ failed }) => failed)));
  const parts: string[] = [`<text class="title" x="0" y="18">${title}</text>`];
  let y = 34;
  for (const { heading, bars } of panels) {
    y += rowHeight;
    parts.push(`<text class="quiet" x="0" y="${y}">${heading}</text>`);
    for (const { name, failed, faults } of bars) {
      y += rowHeight;
      const length = Math.max(1, Math.round((failed / most) * barWidth));
      const kind = name.startsWith("@protoport/") ? "bar ours" : "bar";
      parts.push(
        `<text x="${nameWidth - 10}" y="${y}" text-anchor="end">${name.replace(", before grpc-go", "")}</text>`,
        `<rect class="${kind}" x="${nameWidth}" y="${y - 12}" width="${length}" height="15" rx="2"/>`,
        `<text x="${nameWidth + length + 8}" y="${y}">${failed}${faults === 0 ? "" : ` (${faults})`}</text>`,
      );
    }
    y += rowHeight / 2;
  }
  const size = `width="${width}" height="${y}" viewBox="0 0 ${width} ${y}"`;
  const head = `<svg xmlns="http://www.w3.org/2000/svg" ${size} role="img" aria-label="${title}">`;
  return [head, style, ...parts, "</svg>", ""].join("\n");
}

const title = "Cases of google.api.http that are not kept";

// All lengths are in pixels.
const width = 760;
const nameWidth = 250;
const barWidth = 380;
const rowHeight = 22;

// Colours that are distinguishable on white and on black.
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
