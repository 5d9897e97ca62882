/** What one proxy says about the request that it took: the parameters of an element, by their names in lower case. */
export type ForwardedElement = ReadonlyMap<string, string>;

/**
 * Reads the elements of a `Forwarded` field (RFC 7239 §4) from the last, which the nearest proxy has added, to the
 * first of as many as are asked for. Ends before the first malformed element, because anything may stand to the left of
 * it, before one that is longer, or has more parameters, than proxies write, and before one with which all that was read
 * would be longer than proxies write.
 *
 *     Forwarded         = 1#forwarded-element
 *     forwarded-element = [ forwarded-pair ] *( ";" [ forwarded-pair ] )
 *     forwarded-pair    = token "=" ( token / quoted-string )
 *
 * From the right, because a client can send an opening quotation mark that, read from the left, swallows what the
 * proxies have added.
 */
export function* readForwarded(field: string, elementsMax: number): Generator<ForwardedElement> {
  for (let end = field.length, left = elementsMax; end >= 0 && left > 0; left--) {
    const start = startOfElement(field, end);
    if (start === undefined || field.length - start > readLengthMax) return;
    const element = parseElement(field.slice(start, end).trim());
    if (element === undefined) return;
    if (element.size > 0) yield element;
    end = start - 1;
  }
}

/** Characters of an element: four parameters, of which a host may have 261. */
const elementLengthMax = 1024;

/** Characters of all elements that are read: some 200 of each proxy. Clients may write as many as a header holds. */
const readLengthMax = 4 * 1024;

/** Parameters of an element: the four of RFC 7239 §5, and extensions. Reading one costs as much as 100 characters. */
const parametersMax = 16;

/**
 * Returns the start of the element that ends at `end`; `undefined` when it is too long, or a quotation mark in it has no
 * partner.
 */
function startOfElement(field: string, end: number): number | undefined {
  let at = end;
  while (at > 0 && field[at - 1] !== ",") {
    at = field[at - 1] === '"' ? openingQuote(field, at - 1) : at - 1;
    if (at < 0 || end - at > elementLengthMax) return undefined;
  }
  return at;
}

/** Returns the place of the quotation mark that opens the string closed at `closing`; -1 if there is none. */
function openingQuote(field: string, closing: number): number {
  let at = field.lastIndexOf('"', closing - 1);
  // RFC 9110 §5.6.4: a quotation mark that follows a backslash is part of the text.
  while (closing - at <= elementLengthMax && field[at - 1] === "\\") at = field.lastIndexOf('"', at - 2);
  return closing === 0 ? -1 : at;
}

const token = "[!#$%&'*+\\-.^_`|~0-9A-Za-z]+";
const pair = new RegExp(`(${token})=(?:(${token})|"((?:[^"\\\\]|\\\\.)*)")[ \\t]*(?:;[ \\t]*|$)|(?:;[ \\t]*)+`, "y");

function parseElement(text: string): ForwardedElement | undefined {
  const element = new Map<string, string>();
  pair.lastIndex = 0;
  for (let at = 0; at < text.length; at = pair.lastIndex) {
    const match = pair.exec(text);
    if (match === null) return undefined;
    const [, name, bare, quoted] = match;
    if (name === undefined) continue;
    const key = name.toLowerCase();
    // RFC 7239 §4: no parameter occurs twice in an element.
    if (element.has(key) || element.size === parametersMax) return undefined;
    element.set(key, bare ?? (quoted ?? "").replaceAll(/\\(.)/g, "$1"));
  }
  return element;
}
