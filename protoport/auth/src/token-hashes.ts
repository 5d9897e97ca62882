import { withProblems, parsed, type ParseResult, problemsOf } from "./inputs/index.ts";
import type { StaticToken } from "./static-token.ts";
import { parseExpiry, parseScopes, parseTokenHash, parseTokenName, type ScopeProblem } from "./token-columns.ts";

/**
 * Parses a file of token hashes. Reports every invalid line with its number.
 *
 * Each line has one token, with columns separated by spaces or tabs:
 *
 *     line    = hash name scopes expiry
 *     hash    = "sha256:" 64HEXDIG             ; SHA-256 of the token
 *     name    = 1*128( ALPHA / DIGIT / "-" / "." / "_" / "@" / "/" / ":" )
 *     scopes  = "-" / scope *( "," scope )     ; "-" for all
 *     expiry  = "-" / date-time                ; RFC 3339, "-" for never
 *
 * Empty lines and lines that start with "#" are ignored. Names and hashes must be unique, so that deleting a line
 * revokes its token.
 */
export function parseTokenHashes(text: string, scopeProblem?: ScopeProblem): ParseResult<readonly StaticToken[]> {
  const tokens: StaticToken[] = [];
  const problems: string[] = [];
  const lineOf = new Map<string, number>();

  function checkUnique(what: string, value: string, number: number): void {
    const earlierLine = lineOf.get(`${what} ${value}`);
    if (earlierLine === undefined) lineOf.set(`${what} ${value}`, number);
    else problems.push(`line ${number}: the ${what} already appears on line ${earlierLine}`);
  }

  for (const [index, lineText] of splitLines(text).entries()) {
    if (lineText === "" || lineText.startsWith("#")) continue;
    const number = index + 1;
    const line = parseTokenLine(lineText, scopeProblem);
    if (line.kind === "problems") {
      problems.push(`line ${number}: ${line.problems.join("; ")}`);
      continue;
    }
    checkUnique("name", line.value.name, number);
    checkUnique("hash", line.value.digest, number);
    tokens.push(line.value);
  }
  return problems.length > 0 ? withProblems(...problems) : parsed(tokens);
}

/** Formats a token as a line, without a line break, for {@link parseTokenHashes}. */
export function formatTokenHash(token: StaticToken): string {
  const scopes = token.scopes === "all" ? "-" : [...token.scopes].join(",");
  const expiry = token.expiresAtMs === undefined ? "-" : new Date(token.expiresAtMs).toISOString();
  return `sha256:${token.digest} ${token.name} ${scopes} ${expiry}`;
}

/** Returns a file's content without a token line, or a problem if no token has this name. */
export function removeToken(text: string, name: string): ParseResult<string> {
  const lines = text.split("\n");
  const remaining = lines.filter((line) => line.trim().startsWith("#") || line.trim().split(/[ \t]+/)[1] !== name);
  return remaining.length === lines.length ? withProblems(`no token is named ${name}`) : parsed(remaining.join("\n"));
}

function splitLines(text: string): readonly string[] {
  // Trimming also removes the byte order mark with which some editors start a file.
  return text.split("\n").map((line) => line.trim());
}

function parseTokenLine(text: string, scopeProblem: ScopeProblem | undefined): ParseResult<StaticToken> {
  const columns = text.split(/[ \t]+/);
  if (columns.length !== 4)
    return withProblems(`a line must have 4 columns "sha256:<hex> name scopes|- expiry|-", got ${columns.length}`);
  const [hashText = "", nameText = "", scopesText = "", expiryText = ""] = columns;
  const digest = parseTokenHash(hashText);
  const name = parseTokenName(nameText);
  const scopes = parseScopes(scopesText, scopeProblem);
  const expiry = parseExpiry(expiryText);
  if (digest.kind === "value" && name.kind === "value" && scopes.kind === "value" && expiry.kind === "value") {
    return parsed({ digest: digest.value, name: name.value, scopes: scopes.value, expiresAtMs: expiry.value });
  }
  return withProblems(...problemsOf([digest, name, scopes, expiry]));
}
