/** The longest text, in characters. Meaningful subjects and request ids are shorter. A batch has a thousand each. */
const storableTextCharsMax = 1_024;

/**
 * Converts text to a form that both stores accept, so that one unusual subject cannot fail its whole batch. U+0000,
 * which PostgreSQL refuses, becomes U+FFFD. A lone surrogate also becomes U+FFFD when it is encoded as UTF-8. Text
 * longer than 1,024 characters is truncated and ends with an ellipsis.
 */
export function toStorableText(text: string): string {
  const shortened = text.length > storableTextCharsMax ? `${text.slice(0, storableTextCharsMax - 1)}…` : text;
  // Checking first is several times cheaper than a replacement that finds nothing.
  return shortened.includes("\0") ? shortened.replaceAll("\0", "\uFFFD") : shortened;
}

/** Returns whether both stores keep a text unchanged, so that no other text has the same record. */
export function isStorable(text: string): boolean {
  return toStorableText(text) === text && text.isWellFormed();
}
