/** Maximum number of characters that a message quotes from a foreign string. */
const quotedMax = 200;

/** Returns a string from a server or a client as messages quote it: on one line, and truncated. */
export function toShortLine(text: string): string {
  const line = toOneLine(text);
  return line.length > quotedMax ? `${line.slice(0, quotedMax)}…` : line;
}

/** Returns a string without control characters, with which a log line could be forged or a terminal controlled. */
export function toOneLine(text: string): string {
  // eslint-disable-next-line no-control-regex
  return text.replaceAll(/[\x00-\x1f\x7f-\x9f]+/g, " ");
}
