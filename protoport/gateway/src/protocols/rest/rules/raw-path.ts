/** A raw path's segments, or the reason why there are none: no route can match the path, or the path is malformed. */
type SplitPath =
  /** For a path without escapes, `decoded` is the same array as `raw`. Nearly all paths have no escapes. */
  | { readonly kind: "segments"; readonly raw: readonly string[]; readonly decoded: readonly string[] }
  | { readonly kind: "not-found" }
  | { readonly kind: "malformed"; readonly message: string };

// Matches a percent sign that two hexadecimal digits do not follow (RFC 3986 §2.1).
const badEscape = /%(?![0-9A-Fa-f]{2})/;

const pathNotFound: SplitPath = { kind: "not-found" };

/**
 * Splits a raw path into segments. A raw path has no query, and has its percent escapes as sent.
 *
 * The function splits first and then decodes once, so that an escaped slash never separates segments and an escaped
 * percent sign is never decoded twice. A path is malformed if it contains characters that are not printable ASCII,
 * incomplete escapes, or escapes that are not UTF-8. A path with an escaped or plain segment `.` or `..` is not found.
 * Clients must resolve these segments (RFC 3986 §6.2.2.3), and servers that resolve them have enabled many path
 * traversal attacks.
 */
export function splitRawPath(path: string): SplitPath {
  if (path.charCodeAt(0) !== 0x2f) return pathNotFound;
  const rawSegments: string[] = [];
  let start = 1;
  let escaped = false;
  for (let at = 1; at < path.length; at++) {
    const unit = path.charCodeAt(at);
    if (unit === 0x2f) {
      rawSegments.push(path.slice(start, at));
      start = at + 1;
    } else if (unit === 0x25) {
      escaped = true;
    } else if (unit <= 0x20 || unit >= 0x7f || unit === 0x23) {
      return { kind: "malformed", message: "the path has a character that is not allowed in a URL" };
    }
  }
  rawSegments.push(path.slice(start));
  const decoded = escaped ? decodeSegments(rawSegments) : rawSegments;
  if (decoded === undefined) {
    const message = badEscape.test(path) ? "the path has an invalid percent escape" : "the path is not valid UTF-8";
    return { kind: "malformed", message };
  }
  return decoded.includes(".") || decoded.includes("..")
    ? pathNotFound
    : { kind: "segments", raw: rawSegments, decoded };
}

// Matches path-absolute (RFC 3986 §3.3) without an empty segment.
const pathPrefix = /^(?:\/(?:[A-Za-z0-9\-._~!$&'()*+,;=:@]|%[0-9A-Fa-f]{2})+)+$/;

/** Returns whether a string starts with a slash and has no empty segment, so that it can prefix a path. */
export function isPathPrefix(text: string): boolean {
  return pathPrefix.test(text) && splitRawPath(text).kind === "segments";
}

function decodeSegments(raw: readonly string[]): readonly string[] | undefined {
  try {
    return raw.map(decodeURIComponent);
  } catch {
    return undefined;
  }
}

/** Decodes percent escapes once (RFC 3986 §2.1). @returns `undefined` if an escape is malformed or not UTF-8 */
export function decodePercent(text: string): string | undefined {
  if (!text.includes("%")) return text;
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

/**
 * Decodes percent escapes once, except `%2F` and `%2f`, for variables with several segments. A decoded slash would look
 * like a segment separator (google/api/http.proto). Callers validate the escapes. An invalid escape throws a URIError.
 */
export function decodePercentExceptSlash(text: string): string {
  if (!text.includes("%")) return text;
  // The capturing group makes `split` keep each `%2F` as a separate array element.
  const pieces = text.split(/(%2[Ff])/);
  return pieces.map((piece, at) => (at % 2 === 0 ? decodeURIComponent(piece) : piece)).join("");
}
