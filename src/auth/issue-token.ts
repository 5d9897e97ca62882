import { randomBytes } from "node:crypto";

import { parsed, unparsed, type Parsed } from "./parsed.ts";
import type { StaticToken } from "./static-token.ts";
import { parseExpiry, parseScopes, parseTokenName } from "./token-columns.ts";
import { appendTokenHash } from "./token-hashes-file.ts";
import { formatTokenHash } from "./token-hashes.ts";
import { digestOf } from "./token-verifier.ts";

/** 256 bits: nobody guesses it, so a plain SHA-256 keeps it as well as a slow password hash would. */
const tokenBytes = 32;

/** What is wanted of a token, in the words of the columns of a file of token hashes. */
export interface TokenWish {
  readonly name: string;
  /** Scopes parted by commas; `-` for all. */
  readonly scopes: string;
  /** An RFC 3339 date-time; `-` for never. */
  readonly expiry: string;
  /** The file of token hashes to which the line is added; `undefined` to add it nowhere. */
  readonly file: string | undefined;
}

/** A token that was just made. */
export interface IssuedToken {
  /** 43 characters of base64url: to be shown once and kept nowhere. */
  readonly token: string;
  /** The line for the file of token hashes. */
  readonly line: string;
}

/**
 * Makes a random token of 256 bits and, if wanted, adds its line to a file of token hashes.
 *
 * What is wrong with the wish, or with the file, is returned; then no token was made.
 */
export async function issueToken(wish: TokenWish): Promise<Parsed<IssuedToken>> {
  const name = parseTokenName(wish.name);
  const scopes = parseScopes(wish.scopes);
  const expiry = parseExpiry(wish.expiry);
  if (name.kind !== "value" || scopes.kind !== "value" || expiry.kind !== "value") {
    return unparsed(...[name, scopes, expiry].flatMap((column) => (column.kind === "problems" ? column.problems : [])));
  }
  const token = randomBytes(tokenBytes).toString("base64url");
  const kept: StaticToken = {
    digest: digestOf(token),
    name: name.value,
    scopes: scopes.value,
    expiresAtMs: expiry.value,
  };
  if (wish.file !== undefined) {
    const added = await appendTokenHash(wish.file, kept);
    if (added.kind === "problems") return added;
  }
  return parsed({ token, line: formatTokenHash(kept) });
}
