/** The width of every picture, in pixels. */
export const width = 760;

// Colours that can be told apart on white and on black alike.
const style = `<style>
text { font: 13px system-ui, sans-serif; fill: #24292f }
.title { font-weight: 600; font-size: 15px }
.quiet { fill: #57606a }
.bar { fill: #8c959f }
.ours { fill: #1a7f37 }
.line { stroke: #8c959f; stroke-width: 1.5; fill: none }
.line.ours { stroke: #1a7f37; stroke-width: 2.5; fill: none }
.axis { stroke: #d0d7de }
.room { fill: none; stroke: #8c959f }
.arrow { stroke: #57606a; fill: none; marker-end: url(#head) }
#head path { fill: #57606a }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 }
  .quiet { fill: #9198a1 }
  .bar { fill: #6e7681 }
  .ours { fill: #3fb950 }
  .line { stroke: #6e7681 }
  .line.ours { stroke: #3fb950 }
  .axis { stroke: #30363d }
  .room { stroke: #6e7681 }
  .arrow { stroke: #9198a1 }
  #head path { fill: #9198a1 }
}
</style>`;

/** Returns an SVG image of {@link width} by `height` pixels, made of parts. */
export function svg(title: string, height: number, parts: readonly string[]): string {
  const size = `width="${width}" height="${height}" viewBox="0 0 ${width} ${height}"`;
  const head = `<svg xmlns="http://www.w3.org/2000/svg" ${size} role="img" aria-label="${escape(title)}">`;
  return [head, style, ...parts, "</svg>", ""].join("\n");
}

/** Escapes a text for XML. */
export function escape(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&quot;");
}
