/** Maximum length of a stored text, in characters. Meaningful subjects and request ids are shorter. */
const storableTextCharsMax = 1_024;

/**
 * Returns the text in a form that SQLite and PostgreSQL accept. Without this conversion, an unusual subject could fail
 * its batch. Replaces U+0000, which PostgreSQL refuses, with U+FFFD. UTF-8 encoding replaces lone surrogates with
 * U+FFFD. Text longer than 1,024 characters is truncated and ends with an ellipsis.
 */
export function toStorableText(text: string): string {
  const shortened = text.length > storableTextCharsMax ? `${text.slice(0, storableTextCharsMax - 1)}…` : text;
  // `includes` is several times faster than a `replaceAll` without a match.
  return shortened.includes("\0") ? shortened.replaceAll("\0", "\uFFFD") : shortened;
}

/** Returns whether SQLite and PostgreSQL store a text unchanged, so that no other text is stored the same way. */
export function isStorable(text: string): boolean {
  return toStorableText(text) === text && text.isWellFormed();
}
