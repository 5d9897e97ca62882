/** A well-formed token as the client sent it, before verification. */
interface BearerToken {
  readonly kind: "token";
  readonly token: string;
}

/** The reason why an `Authorization` header contains no bearer token. */
export interface BearerProblem {
  readonly kind: "missing" | "other-scheme" | "malformed";
}

/** Maximum characters (ASCII) in an accepted token. Signed tokens with many group claims reach 4 KiB. */
export const tokenLimitChars: number = 8 * 1024;

// credentials = "Bearer" 1*SP b64token (RFC 6750 §2.1). The pattern is anchored, so that duplicate headers, which
// arrive joined by commas, are malformed. Only spaces may precede the token (RFC 9110 §11.4).
const bearerCredentials = /^bearer +([A-Za-z0-9\-._~+/]+=*)$/i;

// Matches any value with the bearer scheme, even if its token is malformed. `Bearertoken` is a different scheme.
const bearerScheme = /^bearer(?![A-Za-z0-9!#$%&'*+\-.^_`|~])/i;

const missingToken: BearerProblem = { kind: "missing" };
const otherScheme: BearerProblem = { kind: "other-scheme" };
const malformedToken: BearerProblem = { kind: "malformed" };

/**
 * Reads the bearer token from an `Authorization` header's value. Never throws.
 *
 * Checks only the syntax and the length, at most {@link tokenLimitChars}. Missing and invalid credentials are
 * distinguished because only the challenge for invalid ones has `error="invalid_token"` (RFC 6750 §3.1). Without
 * `error="invalid_token"`, a client may retry forever.
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
  // The length is checked first, so that the pattern does not run over a very long header.
  const isShort = authorization.length <= "Bearer ".length + tokenLimitChars;
  // Schemes are case-insensitive (RFC 9110 §11.1). Curl and Go send "Bearer", some SDKs "bearer".
  const token = isShort ? bearerCredentials.exec(authorization)?.[1] : undefined;
  if (token !== undefined) return { kind: "token", token };
  return bearerScheme.test(authorization) ? malformedToken : otherScheme;
}
