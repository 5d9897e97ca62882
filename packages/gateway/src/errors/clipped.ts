/** Characters of a text from elsewhere that a problem quotes at most. */
const quotedMax = 200;

/** Returns a text of a server or a caller as a problem quotes it: on one line, and not too long. */
export function clipped(text: string): string {
  // eslint-disable-next-line no-control-regex
  const line = text.replaceAll(/[\x00-\x1f\x7f-\x9f]+/g, " ");
  return line.length > quotedMax ? `${line.slice(0, quotedMax)}…` : line;
}
