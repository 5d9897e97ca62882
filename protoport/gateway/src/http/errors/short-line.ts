/** Maximum number of characters that an error message quotes from a client's or server's string. */
const quotedMax = 200;

/** Returns a client's or server's string on one line and truncated, so that an error message can quote the string. */
export function toShortLine(text: string): string {
  const line = toOneLine(text);
  return line.length > quotedMax ? `${line.slice(0, quotedMax)}…` : line;
}

/** Removes control characters, with which a client could forge a log line or control a terminal. */
export function toOneLine(text: string): string {
  // eslint-disable-next-line no-control-regex
  return text.replaceAll(/[\x00-\x1f\x7f-\x9f]+/g, " ");
}
