/** A token as the client sent it: well formed, not yet trusted. */
export interface BearerToken {
  readonly kind: "token";
  readonly token: string;
}

/** Why an `Authorization` header holds no bearer token. */
export interface BearerProblem {
  readonly kind: "missing" | "other-scheme" | "malformed";
}

/**
 * The longest token that is looked at, in characters (a token is ASCII, so also in bytes).
 *
 * 8 KiB: signed tokens with many group claims reach 4 KiB; beyond this a request only makes us hash.
 */
export const tokenLimitChars: number = 8 * 1024;

// credentials = "Bearer" 1*SP b64token (RFC 6750 §2.1). Anchored: a header that was sent twice reaches us
// joined by ", " and is malformed, never "the first one". Spaces only, because RFC 9110 §11.4 says 1*SP:
// trimming would also take tabs and, in a Latin-1 field value, no-break spaces.
const bearerCredentials = /^bearer +([A-Za-z0-9\-._~+/]+=*)$/i;

// A field value that starts as a bearer credential, well formed or not; `Bearertoken` is another scheme.
const bearerScheme = /^bearer(?![A-Za-z0-9!#$%&'*+\-.^_`|~])/i;

const missing: BearerProblem = { kind: "missing" };
const otherScheme: BearerProblem = { kind: "other-scheme" };
const malformed: BearerProblem = { kind: "malformed" };

/**
 * Reads the bearer token out of an `Authorization` header value; never throws.
 *
 * Only the syntax is judged here; whether the token is worth anything is for a `TokenVerifier` to say.
 * The two are kept apart because their answers differ: a header that is missing earns a bare
 * challenge, a token that is wrong earns `error="invalid_token"` (RFC 6750 §3.1), and a client that
 * cannot tell them apart retries for ever. A token over {@link tokenLimitChars} is malformed.
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
  // Judged before the pattern walks the text, so that an absurd header costs nothing.
  const isShort = authorization.length <= "Bearer ".length + tokenLimitChars;
  // Schemes are case-insensitive (RFC 9110 §11.1); curl and Go send "Bearer", some SDKs "bearer".
  const token = isShort ? bearerCredentials.exec(authorization)?.[1] : undefined;
  if (token !== undefined) return { kind: "token", token };
  return bearerScheme.test(authorization) ? malformed : otherScheme;
}
