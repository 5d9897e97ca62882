import { parsed, unparsed, type Parsed } from "./parsed.ts";
import type { StaticToken } from "./static-token.ts";

/** What a token may be used for, as {@link StaticToken} has it. */
export type Scopes = StaticToken["scopes"];

// SHA-256 of the token.
const hashColumn = /^sha256:([0-9a-f]{64})$/i;
// What is safe to print in a log line and to store with a deletion, as it is.
const nameColumn = /^[A-Za-z0-9\-._@/:]{1,128}$/;
// scope-token of RFC 6749 §3.3, less the comma that parts scopes here.
const scopeToken = /^[\x21\x23-\x2b\x2d-\x5b\x5d-\x7e]{1,128}$/;
// date-time of RFC 3339 §5.6, with the capital T and Z that it recommends.
const dateTime = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(\.\d{1,9})?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$/;

/** Parses `sha256:<hex>` to the digest in lower case. */
export function parseTokenHash(text: string): Parsed<string> {
  const hex = hashColumn.exec(text)?.[1];
  if (hex === undefined) return unparsed('the hash is not "sha256:" and 64 hex digits');
  return parsed(hex.toLowerCase());
}

/** Parses the name of a token: 1 to 128 letters, digits or `- . _ @ / :`. */
export function parseTokenName(text: string): Parsed<string> {
  return nameColumn.test(text) ? parsed(text) : unparsed("the name is not 1 to 128 letters, digits or - . _ @ / :");
}

/** Parses scopes parted by commas, or `-` for all. */
export function parseScopes(text: string): Parsed<Scopes> {
  if (text === "-") return parsed("all");
  const scopes = text.split(",");
  const bad = scopes.flatMap((scope, index) => (scopeToken.test(scope) ? [] : [index + 1]));
  if (bad.length > 0)
    return unparsed(`scope ${bad.join(", ")} is not a scope-token of RFC 6749 §3.3 ("-" means all scopes)`);
  return parsed(new Set(scopes));
}

/** Parses an RFC 3339 date-time to milliseconds since the epoch, or `-` for never to `undefined`. */
export function parseExpiry(text: string): Parsed<number | undefined> {
  if (text === "-") return parsed(undefined);
  const wallClock = dateTime.exec(text)?.[1];
  // Date.parse turns February 30 into March 2; a date that does not come back is none.
  const isDate = wallClock !== undefined && toWallClock(Date.parse(`${wallClock}Z`)) === wallClock;
  return isDate
    ? parsed(Date.parse(text))
    : unparsed('the expiry is not a date-time such as 2030-01-31T12:00:00Z ("-" means never)');
}

function toWallClock(timeMs: number): string | undefined {
  return Number.isNaN(timeMs) ? undefined : new Date(timeMs).toISOString().slice(0, "2030-01-31T12:00:00".length);
}
