import { type OptionNames, refuseUnknownOptions, required } from "@protoport/gateway/options";
import { withProblems, parsed, type ParseResult, problemsOf } from "./inputs/index.ts";
import { createTokenText, type StaticToken } from "./static-token.ts";
import { parseExpiry, parseScopes, parseTokenName, type ScopeProblem } from "./token-columns.ts";
import { appendTokenHash } from "./token-hashes-file.ts";
import { formatTokenHash } from "./token-hashes.ts";
import { digestOf } from "./token-verifier.ts";

/** A new token's properties, spelled like the columns in a file of token hashes. */
export interface TokenRequest {
  readonly name: string;
  /** The token prefix. */
  readonly prefix: string;
  /** Scopes separated by commas, or `-` for all scopes. */
  readonly scopes: string;
  /** The expiry as an RFC 3339 date-time. `-` means that the token never expires. */
  readonly expiry: string;
  /** The file to which the token's hash is added, or `undefined` to change no file. */
  readonly file: string | undefined;
  /**
   * Returns why a well-formed scope is rejected, or `undefined` to accept it. By default, every well-formed scope is
   * accepted.
   */
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
  /** Created by {@link createTokenText}. Show the token once and do not store it. */
  readonly token: string;
  /** The line for the file of token hashes. */
  readonly line: string;
}

/**
 * Creates a random 256-bit token, and adds its line to the file, if one is given. For an invalid request or file,
 * creates no token and returns the problems. Rejects with a TypeError for unknown properties.
 */
export async function issueToken(request: TokenRequest): Promise<ParseResult<IssuedToken>> {
  refuseUnknownOptions(request, tokenRequestNames, "issueToken");
  const name = parseTokenName(request.name);
  const scopes = parseScopes(request.scopes, request.scopeProblem);
  const expiry = parseExpiry(request.expiry);
  if (name.kind !== "value" || scopes.kind !== "value" || expiry.kind !== "value") {
    return withProblems(...problemsOf([name, scopes, expiry]));
  }
  const token = createTokenText(request.prefix);
  const staticToken: StaticToken = {
    digest: digestOf(token),
    name: name.value,
    scopes: scopes.value,
    expiresAtMs: expiry.value,
  };
  if (request.file !== undefined) {
    const added = await appendTokenHash(request.file, staticToken);
    if (added.kind === "problems") return added;
  }
  return parsed({ token, line: formatTokenHash(staticToken) });
}
