import { element } from "./element.js";

const tokens = /"(?:\\.|[^"\\])*"|[{}[\],:]|[^\s{}[\],:"]+/g;

const openingBrackets = new Set(["{", "["]);
const closingBrackets = new Set(["}", "]"]);

/**
 * Shows indented and highlighted JSON. The text is split into tokens and not parsed, so that numbers keep all digits.
 *
 * @param notes - texts to show after members, by the JSON text of the member, such as `"error":5`
 */
export function jsonText(text: string, notes: ReadonlyMap<string, string> = new Map()): (Node | string)[] {
  const pieces = text.match(tokens) ?? [];
  const nodes: (Node | string)[] = [];
  let depth = 0;
  const lineBreak = (): string => `\n${"  ".repeat(depth)}`;
  for (const [at, token] of pieces.entries()) {
    const next = pieces[at + 1] ?? "";
    if (openingBrackets.has(token)) {
      depth++;
      nodes.push(token, closingBrackets.has(next) ? "" : lineBreak());
    } else if (closingBrackets.has(token)) {
      depth--;
      nodes.push(openingBrackets.has(pieces[at - 1] ?? "") ? "" : lineBreak(), token);
    } else if (token === ",") nodes.push(token, lineBreak());
    else if (token === ":") nodes.push(": ");
    else {
      const annotation = notes.get(pieces.slice(Math.max(at - 2, 0), at + 1).join(""));
      nodes.push(element("span", { class: classOf(token, next) }, token));
      if (annotation !== undefined) nodes.push(element("span", { class: "json-note" }, ` ${annotation}`));
    }
  }
  return nodes;
}

function classOf(token: string, next: string): string {
  if (!token.startsWith('"')) return "json-number";
  return next === ":" ? "json-key" : "json-string";
}
