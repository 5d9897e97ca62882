import { jsonValues } from "./json-values.ts";
import type { Line } from "./line.ts";
import { urlValues } from "./url-values.ts";

/** Returns the contents of the files with regular cases, by name. */
export function generatedFiles(): Readonly<Record<string, string>> {
  return { "values-in-urls.jsonl": toLines(urlValues()), "values-in-json.jsonl": toLines(jsonValues()) };
}

function toLines(lines: readonly Line[]): string {
  return lines.map((line) => `${JSON.stringify(line)}\n`).join("");
}
