import { type OptionNames, refuseUnknownOptions, required } from "@plantstore/gateway/options";
import { notParsed, parsed, type ParseResult, problemsOf } from "./inputs/index.ts";
import type { StaticToken } from "./static-token.ts";
import { parseExpiry, parseScopes, parseTokenName, type ScopeProblem } from "./token-columns.ts";
import { appendTokenHash } from "./token-hashes-file.ts";
import { formatTokenHash } from "./token-hashes.ts";
import { createTokenText } from "./token-text.ts";
import { digestOf } from "./token-verifier.ts";

/** The properties of a new token, spelled like the columns of a file of token hashes. */
export interface TokenRequest {
  readonly name: string;
  /** What the token begins with. */
  readonly prefix: string;
  /** Scopes separated by commas; `-` for all. */
  readonly scopes: string;
  /** An RFC 3339 date-time; `-` for never. */
  readonly expiry: string;
  /** The file of token hashes that the line is added to; `undefined` to add it nowhere. */
  readonly file: string | undefined;
  /** Returns what is wrong with a well-formed scope; by default nothing is. */
  readonly scopeProblem?: ScopeProblem | undefined;
}

const tokenRequestNames: OptionNames<TokenRequest> = {
  name: required,
  prefix: required,
  scopes: required,
  expiry: required,
  file: true,
  scopeProblem: true,
};

/** A new token. */
export interface IssuedToken {
  /** Of the form of {@link createTokenText}; to be shown once and stored nowhere. */
  readonly token: string;
  /** The line for the file of token hashes. */
  readonly line: string;
}

/**
 * Creates a random token of 256 bits and, if a file is given, adds its line there.
 *
 * Returns everything that is wrong with the request or the file instead; then no token was created. Rejects with a
 * TypeError for properties that do not exist.
 */
export async function issueToken(request: TokenRequest): Promise<ParseResult<IssuedToken>> {
  refuseUnknownOptions(request, tokenRequestNames, "issueToken");
  const name = parseTokenName(request.name);
  const scopes = parseScopes(request.scopes, request.scopeProblem);
  const expiry = parseExpiry(request.expiry);
  if (name.kind !== "value" || scopes.kind !== "value" || expiry.kind !== "value") {
    return notParsed(...problemsOf([name, scopes, expiry]));
  }
  const token = createTokenText(request.prefix);
  const kept: StaticToken = {
    digest: digestOf(token),
    name: name.value,
    scopes: scopes.value,
    expiresAtMs: expiry.value,
  };
  if (request.file !== undefined) {
    const added = await appendTokenHash(request.file, kept);
    if (added.kind === "problems") return added;
  }
  return parsed({ token, line: formatTokenHash(kept) });
}
