import { withProblems, parsed, type ParseResult } from "./inputs/index.ts";
import type { StaticToken } from "./static-token.ts";

/** A {@link StaticToken}'s scopes. */
type Scopes = StaticToken["scopes"];

const hashColumn = /^sha256:([0-9a-f]{64})$/i;
// Allows only characters that need no escaping in a log line or a deletion record.
const nameColumn = /^[A-Za-z0-9\-._@/:]{1,128}$/;
// Matches a scope-token (RFC 6749 §3.3) without a comma, because a comma separates scopes in the file.
const scopeToken = /^[\x21\x23-\x2b\x2d-\x5b\x5d-\x7e]{1,128}$/;
// Matches a date-time (RFC 3339 §5.6). T and Z must be upper case, as the RFC recommends.
const dateTime = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(\.\d{1,9})?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$/;

/** Parses `sha256:<hex>` to the digest in lower case. */
export function parseTokenHash(text: string): ParseResult<string> {
  const hex = hashColumn.exec(text)?.[1];
  if (hex === undefined) return withProblems('the hash must be "sha256:" followed by 64 hex digits');
  return parsed(hex.toLowerCase());
}

/** Parses a token name, which has 1 to 128 letters, digits or `- . _ @ / :`. */
export function parseTokenName(text: string): ParseResult<string> {
  return nameColumn.test(text)
    ? parsed(text)
    : withProblems("the name must be 1 to 128 letters, digits or - . _ @ / :");
}

/** Returns why a well-formed scope is rejected, such as one that no procedure requires, or `undefined` to accept it. */
export type ScopeProblem = (scope: string) => string | undefined;

/** Parses scopes separated by commas, or `-` for all scopes. */
export function parseScopes(text: string, problemOf: ScopeProblem = noProblem): ParseResult<Scopes> {
  if (text === "-") return parsed("all");
  const scopes = text.split(",");
  const invalidPositions = scopes.flatMap((scope, index) => (scopeToken.test(scope) ? [] : [index + 1]));
  if (invalidPositions.length > 0)
    return withProblems(
      `scope ${invalidPositions.join(", ")} is not a valid scope-token (RFC 6749 §3.3; "-" means all scopes)`,
    );
  const problems = scopes.flatMap((scope) => problemOf(scope) ?? []);
  return problems.length > 0 ? withProblems(...problems) : parsed(new Set(scopes));
}

function noProblem(): undefined {}

/** Parses an RFC 3339 date-time to milliseconds since the epoch. Parses `-`, which means never, to `undefined`. */
export function parseExpiry(text: string): ParseResult<number | undefined> {
  if (text === "-") return parsed(undefined);
  const wallClock = dateTime.exec(text)?.[1];
  // Date.parse turns February 30 into March 2, so a date that changes when it is parsed and formatted is invalid.
  const isDate = wallClock !== undefined && toWallClock(Date.parse(`${wallClock}Z`)) === wallClock;
  return isDate
    ? parsed(Date.parse(text))
    : withProblems('the expiry must be a date-time such as 2030-01-31T12:00:00Z ("-" means never)');
}

function toWallClock(timeMs: number): string | undefined {
  return Number.isNaN(timeMs) ? undefined : new Date(timeMs).toISOString().slice(0, "2030-01-31T12:00:00".length);
}
