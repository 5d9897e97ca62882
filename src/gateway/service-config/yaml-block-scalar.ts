import type { YamlSource } from "./yaml-source.ts";

/**
 * Reads a text after `|` or `>`: YAML 1.2 §8.1.
 *
 * @param parent - the column of what the text belongs to; its lines are indented further
 */
export function readBlockScalar(source: YamlSource, parent: number): string {
  const header = (source.lines[source.line] ?? "").slice(source.column);
  const [, style = "", digit = "", chomping = "", laterDigit = ""] =
    /^([|>])([1-9]?)([-+]?)([1-9]?)(?: .*)?$/.exec(header) ?? [];
  if (style === "" || (digit !== "" && laterDigit !== "")) throw source.unexpected();
  source.skip(`${style}${digit}${chomping}${laterDigit}`.length);
  source.endLine();
  const given = Number(digit || laterDigit);
  const lines = readLines(source, given > 0 ? Math.max(parent, 0) + given : findIndent(source, parent));
  const end = lines.findLastIndex((line) => line !== "") + 1;
  const content = lines.slice(0, end);
  const text = style === "|" ? content.join("\n") : fold(content);
  if (chomping === "-") return text;
  return text + "\n".repeat(chomping === "+" ? lines.length - end + Math.sign(end) : Math.sign(end));
}

/** Returns the indentation of the first line that is not blank; one that no line has if the text is empty. */
function findIndent(source: YamlSource, parent: number): number {
  let blank = 0;
  for (let at = source.line; at < source.lines.length; at++) {
    const line = source.lines[at] ?? "";
    const indent = indentOf(line);
    if (indent === line.length) {
      blank = Math.max(blank, indent);
      continue;
    }
    if (indent <= parent) break;
    if (blank > indent) throw source.problem("the lines before are indented further", at, indent);
    return indent;
  }
  return Math.max(blank, parent + 1);
}

function readLines(source: YamlSource, indent: number): string[] {
  const lines: string[] = [];
  for (; source.line < source.lines.length; source.line++) {
    const line = source.lines[source.line] ?? "";
    const isBlank = indentOf(line) === line.length;
    if (!isBlank && (indentOf(line) < indent || source.isMarker("---") || source.isMarker("..."))) break;
    lines.push(line.slice(indent));
  }
  // Without any text, spaces are none either.
  if (lines.every((line) => /^ *$/.test(line))) lines.fill("");
  // The end of the last line is not another line.
  if (source.line === source.lines.length && lines.at(-1) === "") lines.pop();
  return lines;
}

/** Joins lines by spaces, but for those that begin with white space: YAML 1.2 §8.1.3. */
function fold(lines: readonly string[]): string {
  let text = "";
  let empty = 0;
  let before: "nothing" | "text" | "spaced" = "nothing";
  for (const line of lines) {
    if (line === "") {
      empty++;
      continue;
    }
    const kind = /^[ \t]/.test(line) ? "spaced" : "text";
    if (before === "nothing") text += "\n".repeat(empty);
    else if (before === "text" && kind === "text") text += empty === 0 ? " " : "\n".repeat(empty);
    else text += "\n".repeat(empty + 1);
    text += line;
    before = kind;
    empty = 0;
  }
  return text;
}

function indentOf(line: string): number {
  return line.length - line.replace(/^ +/, "").length;
}
