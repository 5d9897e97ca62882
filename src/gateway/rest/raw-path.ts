import { decodePercent } from "./percent.ts";

/** A request's path, split at its slashes; `decoded` has the same segments with their escapes decoded once. */
export interface RawPath {
  readonly kind: "segments";
  readonly raw: readonly string[];
  /** The same array as `raw` when the path has no escapes, as nearly every path. */
  readonly decoded: readonly string[];
}

/** What a raw path is: segments to match, nothing that could match, or no path at all. */
export type SplitPath =
  | RawPath
  | { readonly kind: "not-found" }
  | { readonly kind: "malformed"; readonly message: string };

const notFound: SplitPath = { kind: "not-found" };

/**
 * Splits a raw path (no query, percent escapes as they were sent) into its segments.
 *
 * Split first, decode then, and once: an escaped slash never makes a segment, an escaped percent sign is
 * never decoded twice. Malformed is what RFC 3986 has no place for: characters that are not printable
 * ASCII, a cut escape, escapes that are not UTF-8. A path with a segment `.` or `..`, escaped or not, is
 * no resource here: resolving it is for the client (RFC 3986 §6.2.2.3), and guessing has opened many files.
 */
export function splitRawPath(path: string): SplitPath {
  if (path.charCodeAt(0) !== 0x2f) return notFound;
  const raw: string[] = [];
  let start = 1;
  let escaped = false;
  for (let at = 1; at < path.length; at++) {
    const unit = path.charCodeAt(at);
    if (unit === 0x2f) {
      raw.push(path.slice(start, at));
      start = at + 1;
    } else if (unit === 0x25) {
      escaped = true;
    } else if (unit <= 0x20 || unit >= 0x7f || unit === 0x23) {
      return { kind: "malformed", message: "the path has a character that a URL cannot have" };
    }
  }
  raw.push(path.slice(start));
  const decoded = escaped ? decodeSegments(raw) : raw;
  if (decoded === undefined) return { kind: "malformed", message: "the path has a bad percent escape" };
  return hasDotSegment(decoded) ? notFound : { kind: "segments", raw, decoded };
}

function decodeSegments(raw: readonly string[]): readonly string[] | undefined {
  const decoded: string[] = [];
  for (const segment of raw) {
    const text = decodePercent(segment);
    if (text === undefined) return undefined;
    decoded.push(text);
  }
  return decoded;
}

function hasDotSegment(segments: readonly string[]): boolean {
  for (const segment of segments) {
    if (segment === "." || segment === "..") return true;
  }
  return false;
}
