/** Characters. No subject or request id that means something to a reader is longer; a batch holds a thousand of each. */
const recordTextMax = 1_024;

/**
 * Text as the deletion record keeps it: something that both stores take, so that one strange subject does
 * not fail the batch it is in. PostgreSQL refuses U+0000 in text, which is kept as U+FFFD, as half a surrogate
 * pair is by UTF-8 itself. What is longer than 1,024 characters is cut, and ends with an ellipsis.
 */
export function recordText(text: string): string {
  const short = text.length > recordTextMax ? `${text.slice(0, recordTextMax - 1)}…` : text;
  // To look first is several times cheaper than to replace nothing.
  return short.includes("\0") ? short.replaceAll("\0", "\uFFFD") : short;
}
