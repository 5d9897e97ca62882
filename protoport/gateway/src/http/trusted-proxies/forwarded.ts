import { tokenPattern } from "../exchange/index.ts";

/** The parameters that one proxy reports about a request, by name in lower case. */
type ForwardedElement = ReadonlyMap<string, string>;

/**
 * Reads up to `maxElements` elements in a `Forwarded` field (RFC 7239 §4). Reading starts with the last element, which
 * the nearest proxy has added. Reading stops at the first malformed element, because a client may have written all
 * elements to the left. Reading also stops at the first element that exceeds a limit.
 *
 *     Forwarded         = 1#forwarded-element
 *     forwarded-element = [ forwarded-pair ] *( ";" [ forwarded-pair ] )
 *     forwarded-pair    = token "=" ( token / quoted-string )
 *
 * The field is read from the right. If the field were read from the left, an opening quotation mark from a client would
 * hide the proxies' elements.
 */
export function* readForwarded(field: string, maxElements: number): Generator<ForwardedElement> {
  for (let end = field.length, remaining = maxElements; end >= 0 && remaining > 0; remaining--) {
    const start = startOfElement(field, end);
    if (start === undefined || field.length - start > maxReadLength) return;
    const element = parseElement(field.slice(start, end).trim());
    if (element === undefined) return;
    if (element.size > 0) yield element;
    end = start - 1;
  }
}

/** Maximum number of characters in an element: enough for four parameters, of which the host has up to 261. */
const maxElementLength = 1024;

/** Maximum number of characters that are read, about 200 per proxy. Clients may send much longer fields. */
const maxReadLength = 4 * 1024;

/** Maximum parameters in an element: four from RFC 7239 §5, and extensions. Each costs as much as 100 characters. */
const maxParameters = 16;

/** Returns the start of the element that ends at `end`, unless it is too long or has an unpaired quotation mark. */
function startOfElement(field: string, end: number): number | undefined {
  let at = end;
  while (at > 0 && field[at - 1] !== ",") {
    at = field[at - 1] === '"' ? openingQuote(field, at - 1) : at - 1;
    if (at < 0 || end - at > maxElementLength) return undefined;
  }
  return at;
}

/** Returns the index of the opening quotation mark for the closing mark at `closing`, or -1. */
function openingQuote(field: string, closing: number): number {
  let at = field.lastIndexOf('"', closing - 1);
  // A quotation mark that follows a backslash is part of the text (RFC 9110 §5.6.4).
  while (closing - at <= maxElementLength && field[at - 1] === "\\") at = field.lastIndexOf('"', at - 2);
  return closing === 0 ? -1 : at;
}

const pair = new RegExp(
  `(${tokenPattern})=(?:(${tokenPattern})|"((?:[^"\\\\]|\\\\.)*)")[ \\t]*(?:;[ \\t]*|$)|(?:;[ \\t]*)+`,
  "y",
);

function parseElement(text: string): ForwardedElement | undefined {
  const element = new Map<string, string>();
  pair.lastIndex = 0;
  for (let at = 0; at < text.length; at = pair.lastIndex) {
    const match = pair.exec(text);
    if (match === null) return undefined;
    const [, name, bare, quoted] = match;
    if (name === undefined) continue;
    const key = name.toLowerCase();
    // A parameter must not occur twice in an element (RFC 7239 §4).
    if (element.has(key) || element.size === maxParameters) return undefined;
    element.set(key, bare ?? (quoted ?? "").replaceAll(/\\(.)/g, "$1"));
  }
  return element;
}
