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
 * 8 KiB: signed tokens with many group claims reach 4 KiB. Anything longer would only cost us hashing.
 */
export const tokenLimitChars: number = 8 * 1024;

// credentials = "Bearer" 1*SP b64token (RFC 6750 §2.1). Anchored: a header that was sent twice arrives joined by ", "
// and is malformed, rather than read as its first value. Only spaces, because RFC 9110 §11.4 says 1*SP: trimming would
// also remove tabs and, in a Latin-1 field value, no-break spaces.
const bearerCredentials = /^bearer +([A-Za-z0-9\-._~+/]+=*)$/i;

// Matches a value that starts with the bearer scheme, well formed or not; `Bearertoken` is another scheme.
const bearerScheme = /^bearer(?![A-Za-z0-9!#$%&'*+\-.^_`|~])/i;

const missing: BearerProblem = { kind: "missing" };
const otherScheme: BearerProblem = { kind: "other-scheme" };
const malformed: BearerProblem = { kind: "malformed" };

/**
 * Reads the bearer token from the value of an `Authorization` header; never throws.
 *
 * This checks the syntax only; a `TokenVerifier` decides whether the token is valid. The two are separate because their
 * answers differ: a missing header gets a bare challenge, a wrong token gets `error="invalid_token"` (RFC 6750 §3.1),
 * and a client that cannot tell them apart retries forever. A token longer than {@link tokenLimitChars} is malformed.
 *
 * @example
 * ```ts
 * readBearerToken("bearer abc.def"); // { kind: "token", token: "abc.def" }
 * readBearerToken("Basic dTpw");     // { kind: "other-scheme" }
 * readBearerToken(null);             // { kind: "missing" }
 * ```
 */
export function readBearerToken(authorization: string | null): BearerToken | BearerProblem {
  if (authorization === null || authorization === "") return missing;
  // Checked before the pattern runs, so that an absurdly long header costs nothing.
  const isShort = authorization.length <= "Bearer ".length + tokenLimitChars;
  // Schemes are case-insensitive (RFC 9110 §11.1); curl and Go send "Bearer", some SDKs "bearer".
  const token = isShort ? bearerCredentials.exec(authorization)?.[1] : undefined;
  if (token !== undefined) return { kind: "token", token };
  return bearerScheme.test(authorization) ? malformed : otherScheme;
}
