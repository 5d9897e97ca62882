/** A token as the client sent it: well formed, not yet verified. */
export interface BearerToken {
  readonly kind: "token";
  readonly token: string;
}

/** Why an `Authorization` header holds no bearer token. */
export interface BearerProblem {
  readonly kind: "missing" | "other-scheme" | "malformed";
}

/**
 * The longest token that is accepted, in characters (a token is ASCII, so also in bytes).
 *
 * 8 KiB: signed tokens with many group claims reach 4 KiB. Longer ones would only cost time to hash.
 */
export const tokenLimitChars: number = 8 * 1024;

// credentials = "Bearer" 1*SP b64token (RFC 6750 §2.1). Anchored, so that a duplicate header, whose values arrive
// joined by ", ", is malformed. Only spaces are skipped (RFC 9110 §11.4). Trimming would also remove tabs and, in a
// Latin-1 field value, no-break spaces.
const bearerCredentials = /^bearer +([A-Za-z0-9\-._~+/]+=*)$/i;

// Matches any value with the bearer scheme, even if its token is malformed. `Bearertoken` is a different scheme.
const bearerScheme = /^bearer(?![A-Za-z0-9!#$%&'*+\-.^_`|~])/i;

const missingToken: BearerProblem = { kind: "missing" };
const otherScheme: BearerProblem = { kind: "other-scheme" };
const malformedToken: BearerProblem = { kind: "malformed" };

/**
 * Reads the bearer token from an `Authorization` header's value. Never throws.
 *
 * Checks the syntax only. A `TokenVerifier` decides whether the token is valid. Missing and invalid credentials are
 * distinguished because their challenges differ. Only the latter has `error="invalid_token"` (RFC 6750 §3.1), without
 * which a client may retry forever. A token longer than {@link tokenLimitChars} is malformed.
 *
 * @example
 * ```ts
 * readBearerToken("bearer abc.def"); // { kind: "token", token: "abc.def" }
 * readBearerToken("Basic dTpw");     // { kind: "other-scheme" }
 * readBearerToken(null);             // { kind: "missing" }
 * ```
 */
export function readBearerToken(authorization: string | null): BearerToken | BearerProblem {
  if (authorization === null || authorization === "") return missingToken;
  // Checked first, so that the pattern does not run over a very long header.
  const isShort = authorization.length <= "Bearer ".length + tokenLimitChars;
  // Schemes are case-insensitive (RFC 9110 §11.1). Curl and Go send "Bearer", some SDKs "bearer".
  const token = isShort ? bearerCredentials.exec(authorization)?.[1] : undefined;
  if (token !== undefined) return { kind: "token", token };
  return bearerScheme.test(authorization) ? malformedToken : otherScheme;
}
