import { element } from "./element.js";

const tokens = /"(?:\\.|[^"\\])*"|[{}[\],:]|[^\s{}[\],:"]+/g;

const opening = new Set(["{", "["]);
const closing = new Set(["}", "]"]);

/**
 * Shows JSON indented and in colours, token by token, so that numbers keep all their digits.
 *
 * @param {string} text
 * @param {ReadonlyMap<string, string>} [notes] the text to show after a token, by the member and the token: `"error":5`
 * @returns {(Node | string)[]}
 */
export function jsonText(text, notes = new Map()) {
  const pieces = text.match(tokens) ?? [];
  /** @type {(Node | string)[]} */
  const shown = [];
  let depth = 0;
  const lineBreak = () => `\n${"  ".repeat(depth)}`;
  for (const [at, token] of pieces.entries()) {
    const next = pieces[at + 1] ?? "";
    if (opening.has(token)) {
      depth++;
      shown.push(token, closing.has(next) ? "" : lineBreak());
    } else if (closing.has(token)) {
      depth--;
      shown.push(opening.has(pieces[at - 1] ?? "") ? "" : lineBreak(), token);
    } else if (token === ",") shown.push(token, lineBreak());
    else if (token === ":") shown.push(": ");
    else shown.push(element("span", { class: classOf(token, next) }, [token]), ...noteOf(notes, pieces, at));
  }
  return shown;
}

/**
 * @param {ReadonlyMap<string, string>} notes
 * @param {string[]} pieces
 * @param {number} at
 */
function noteOf(notes, pieces, at) {
  const note = notes.get(pieces.slice(Math.max(at - 2, 0), at + 1).join(""));
  return note === undefined ? [] : [element("span", { class: "json-note" }, [` ${note}`])];
}

/**
 * @param {string} token
 * @param {string} next
 */
function classOf(token, next) {
  if (!token.startsWith('"')) return "json-number";
  return next === ":" ? "json-key" : "json-string";
}
