/** Maximum length of a stored text, in characters. Meaningful subjects and request ids are shorter. */
const storableTextCharsMax = 1_024;

/**
 * Returns the text in a form that SQLite and PostgreSQL accept, so that an unusual subject does not fail its batch.
 * U+0000, which PostgreSQL refuses, becomes U+FFFD. Text over 1,024 characters is cut off, and ends with an ellipsis.
 */
export function toStorableText(text: string): string {
  const shortened = text.length > storableTextCharsMax ? `${text.slice(0, storableTextCharsMax - 1)}…` : text;
  // `includes` is several times faster than a `replaceAll` without a match.
  return shortened.includes("\0") ? shortened.replaceAll("\0", "\uFFFD") : shortened;
}

/** Returns whether SQLite and PostgreSQL store a text unchanged. UTF-8 would replace lone surrogates. */
export function isStorable(text: string): boolean {
  return toStorableText(text) === text && text.isWellFormed();
}
