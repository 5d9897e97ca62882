/**
 * Text as the deletion record keeps it. PostgreSQL refuses U+0000 in text, and one strange subject
 * shall not fail the batch it is in.
 */
export function recordText(text: string): string {
  return text.includes("\0") ? text.replaceAll("\0", "\uFFFD") : text;
}
