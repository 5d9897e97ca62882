/** The longest text, in characters. No meaningful subject or request id is longer; a batch has a thousand of each. */
const storableTextCharsMax = 1_024;

/**
 * Converts text to what both stores accept, so that one strange subject cannot fail its whole batch. PostgreSQL refuses
 * U+0000, which becomes U+FFFD; UTF-8 itself does the same to half a surrogate pair. Text longer than 1,024 characters
 * is cut and ends with an ellipsis.
 */
export function toStorableText(text: string): string {
  const short = text.length > storableTextCharsMax ? `${text.slice(0, storableTextCharsMax - 1)}…` : text;
  // Checking first is several times cheaper than a replacement that finds nothing.
  return short.includes("\0") ? short.replaceAll("\0", "\uFFFD") : short;
}

/** Returns whether both stores keep a text as it is, so that no other text is kept as the same. */
export function isStorable(text: string): boolean {
  return toStorableText(text) === text && text.isWellFormed();
}
