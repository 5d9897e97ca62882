/**
 * Decodes percent escapes once (RFC 3986 §2.1).
 *
 * @returns `undefined` when an escape is incomplete or not hexadecimal, or the bytes are not UTF-8
 */
export function decodePercent(text: string): string | undefined {
  if (!text.includes("%")) return text;
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

/**
 * Decodes percent escapes once, but leaves `%2F` and `%2f` as they are, for variables of several segments: a decoded
 * slash would look like one between segments (google/api/http.proto). The escapes must have been checked: a bad one
 * throws a URIError.
 */
export function decodePercentExceptSlash(text: string): string {
  if (!text.includes("%")) return text;
  // The capturing group keeps the escapes in the list, between the pieces.
  const pieces = text.split(/(%2[Ff])/);
  return pieces.map((piece, at) => (at % 2 === 0 ? decodeURIComponent(piece) : piece)).join("");
}
