import type { YamlSource, YamlValue } from "./yaml-source.ts";

/**
 * Reads a text in quotes, which ends on its line. Double quotes have the escapes of YAML 1.2 §5.7.
 *
 * @throws YamlProblem if it does not end, or has an escape that is none
 */
export function readQuoted(source: YamlSource): string {
  const quote = source.char;
  const { line, column } = source;
  let text = "";
  for (source.skip(1); ; source.skip(1)) {
    const char = source.char;
    if (char === "") throw source.problem("quotes do not end on this line", line, column);
    if (char === quote) {
      source.skip(1);
      // Two of them stand for one: YAML 1.2 §7.3.2.
      if (quote === '"' || source.char !== quote) return text;
      text += quote;
    } else {
      text += char === "\\" && quote === '"' ? readEscape(source) : char;
    }
  }
}

// YAML 1.2 §5.7.
const escapes: Readonly<Record<string, string>> = {
  "0": "\0",
  a: "\x07",
  b: "\b",
  t: "\t",
  n: "\n",
  v: "\v",
  f: "\f",
  r: "\r",
  e: "\x1b",
  " ": " ",
  '"': '"',
  "/": "/",
  "\\": "\\",
  N: "\x85",
  _: "\xa0",
  L: "\u2028",
  P: "\u2029",
};

const hexDigits: Readonly<Record<string, number>> = { x: 2, u: 4, U: 8 };

/** Reads an escape up to its last character. */
function readEscape(source: YamlSource): string {
  const { line, column } = source;
  source.skip(1);
  const name = source.char;
  const simple = Object.hasOwn(escapes, name) ? escapes[name] : undefined;
  if (simple !== undefined) return simple;
  const digits = Object.hasOwn(hexDigits, name) ? hexDigits[name] : undefined;
  let hex = "";
  for (let at = 0; at < (digits ?? 0); at++) {
    source.skip(1);
    hex += source.char;
  }
  const codePoint = hex.length === digits && /^[0-9A-Fa-f]+$/.test(hex) ? Number.parseInt(hex, 16) : Infinity;
  if (codePoint > 0x10ffff) throw source.problem("this escape is none of YAML", line, column);
  return String.fromCodePoint(codePoint);
}

/** Returns whether a plain text begins here: YAML 1.2 §7.3.3. */
export function isPlainStart(source: YamlSource, inFlow: boolean): boolean {
  const next = source.charAfter(1);
  if (/[-?:]/.test(source.char)) return next !== "" && next !== " " && !(inFlow && /[,[\]{}]/.test(next));
  return source.char !== "" && !/[,[\]{}#&*!|>'"%@`\t]/.test(source.char);
}

/** Reads a plain text up to the end of its line, a comment, or the end of a key. @throws YamlProblem for a tab */
export function readPlainLine(source: YamlSource, inFlow: boolean): string {
  let text = "";
  for (; !source.isLineEnd; source.skip(1)) {
    const { char } = source;
    if (char === "\t") throw source.unexpected();
    if (inFlow && /[,[\]{}]/.test(char)) break;
    if (source.isColon || (inFlow && char === ":" && /[,[\]{}]/.test(source.charAfter(1)))) break;
    text += char;
  }
  return text.replace(/ +$/, "");
}

/** Returns the value of a plain text by the core schema: YAML 1.2 §10.3.2, without infinity. */
export function plainValue(text: string): YamlValue {
  if (/^(?:~|null|Null|NULL|)$/.test(text)) return null;
  if (/^(?:true|True|TRUE|false|False|FALSE)$/.test(text)) return text.toLowerCase() === "true";
  const isNumber = /^[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$/.test(text);
  return isNumber || /^0(?:o[0-7]+|x[0-9a-fA-F]+)$/.test(text) ? Number(text) : text;
}

/** Refuses a plain key that YAML takes for a number, a boolean or null: parsers differ in what becomes of it. */
export function requireTextKey(source: YamlSource, key: string, firstChar: string): void {
  if (firstChar === '"' || firstChar === "'" || typeof plainValue(key) === "string") return;
  throw source.problem("a key that is no text; it is one in quotes", source.line, source.column - key.length);
}
