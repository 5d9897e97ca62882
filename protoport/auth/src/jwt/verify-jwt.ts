import { errors, type JWTPayload, jwtVerify, type JWTVerifyGetKey, type JWTVerifyResult } from "jose";

import type { ExpiringOutcome } from "../outcome-cache.ts";
import { hasNameWithBackslash } from "../json-object.ts";
import { clockSkewS, isSubject, readScopes, maxSubjectChars } from "../token-claims.ts";
import type { TokenOutcome } from "../token-verifier.ts";
import { type IssuerKeys, KeysUnavailableError } from "./issuer-keys.ts";
import type { JwtAlgorithm } from "./jwt-algorithm.ts";

/** An issuer whose tokens are accepted, and the requirements on its tokens. */
export interface TrustedIssuer {
  /** The exact `iss` value. */
  readonly issuer: string;
  /** `aud` must contain one of these audiences, so that tokens for other services are rejected. */
  readonly audiences: readonly string[];
  /** The claim that is checked instead of `aud` in tokens without `aud`. `undefined` rejects these tokens. */
  readonly audienceClaim: string | undefined;
  /** The claims with a token's scopes. `undefined` grants every scope: many providers issue tokens without scopes. */
  readonly scopeClaims: readonly string[] | undefined;
  /** The allowed `alg` values. */
  readonly algorithms: readonly JwtAlgorithm[];
  /** Whether `typ` must be `at+jwt` (RFC 9068 §4). If false, `JWT` and no `typ`, which are common, are accepted too. */
  readonly requireAccessTokenType: boolean;
  readonly keys: IssuerKeys;
}

/** Milliseconds for which a permanent rejection is cached. Clients usually repeat a bad token in a loop. */
const rejectedTtlMs = 60_000;

/**
 * Verifies a token's signature, then its header and claims. An invalid token is an outcome, never an exception.
 * Outcomes may be cached while the key set is in use: for a valid token until its expiry, for a rejected token for a
 * minute. Rejections that are not permanent (`nbf`, `iat`, unavailable keys) are not cached.
 */
export async function verifyJwt(text: string, trusted: TrustedIssuer): Promise<ExpiringOutcome> {
  // A `kid` that is not a string is ignored, because some providers send a number.
  const findKey: JWTVerifyGetKey = ({ kid, ...header }, jws) =>
    trusted.keys.find(typeof kid === "string" ? { ...header, kid } : header, jws);
  try {
    const verified = await jwtVerify(text, findKey, {
      algorithms: [...trusted.algorithms],
      issuer: trusted.issuer,
      ...(trusted.audienceClaim === undefined && { audience: [...trusted.audiences] }),
      clockTolerance: clockSkewS,
    });
    return checkClaims(verified, trusted);
  } catch (error) {
    return outcomeOfError(error, trusted.keys);
  }
}

/** Checks the claims that `jwtVerify` does not check. */
function checkClaims({ payload, protectedHeader }: JWTVerifyResult, trusted: TrustedIssuer): ExpiringOutcome {
  const { iss, sub, exp, iat, cnf } = payload;
  if (!isAccessTokenType(protectedHeader.typ, trusted))
    return rejectedOutcome('"typ" is not the type of an access token');
  const problem = trusted.audienceClaim === undefined ? undefined : audienceProblem(payload, trusted);
  if (problem !== undefined) return rejectedOutcome(problem);
  if (!isSubject(sub)) return rejectedOutcome(`"sub" must be a string of 1 to ${maxSubjectChars} characters`);
  // 1e999 is a valid number in JSON, and is parsed as Infinity.
  if (exp === undefined || !Number.isFinite(exp)) return rejectedOutcome('"exp" must be a NumericDate');
  if (iat !== undefined && !(typeof iat === "number" && iat <= Date.now() / 1000 + clockSkewS)) {
    return uncachedOutcome({ kind: "invalid", reason: '"iat" must be a NumericDate in the past' });
  }
  // With an undecoded escape in its name, `crit` or `cnf` would be missed.
  if (hasNameWithBackslash(protectedHeader) || hasNameWithBackslash(payload))
    return rejectedOutcome("a header parameter or claim has a name with a backslash");
  // The token is valid only with a proof of possession, which is not supported (RFC 7800 §3.1).
  if (cnf !== undefined) return rejectedOutcome('the token is bound to a key ("cnf"), which is not supported');
  const scopes = trusted.scopeClaims?.flatMap((claim) => readScopes(payload[claim]));
  const outcome: TokenOutcome = {
    kind: "principal",
    subject: sub,
    issuer: iss,
    scopes: scopes === undefined ? "all" : new Set(scopes),
  };
  return { outcome, untilMs: (exp + clockSkewS) * 1000 };
}

/** Checks `aud` or, in tokens without `aud` like Amazon Cognito's access tokens, `audienceClaim`. */
function audienceProblem(payload: JWTPayload, { audiences, audienceClaim }: TrustedIssuer): string | undefined {
  const claim = payload.aud === undefined && audienceClaim !== undefined ? audienceClaim : "aud";
  const values: unknown[] = [payload[claim]].flat();
  if (!audiences.some((audience) => values.includes(audience))) return `"${claim}" contains no accepted audience`;
  // Rejects Amazon Cognito's ID tokens, which have the access tokens' issuer and keys, and the client id in `aud`.
  const { token_use: use } = payload;
  return use === undefined || use === "access" ? undefined : '"token_use" must be "access"';
}

// `typ` is a media type whose "application/" may be omitted (RFC 7515 §4.1.9). Another type (`logout+jwt`, `dpop+jwt`)
// means that the token is not an access token (RFC 8725 §3.11). A `typ` that is not a string is ignored.
function isAccessTokenType(type: unknown, { requireAccessTokenType }: TrustedIssuer): boolean {
  const name = typeof type === "string" ? type.toLowerCase().replace(/^application\//, "") : undefined;
  return name === "at+jwt" || (!requireAccessTokenType && (name === undefined || name === "jwt"));
}

function outcomeOfError(error: unknown, keys: IssuerKeys): ExpiringOutcome {
  const reason = error instanceof Error ? error.message : String(error);
  if (error instanceof errors.JWTExpired) return rejectedOutcome(reason, "expired");
  if (error instanceof errors.JWKSMultipleMatchingKeys)
    return rejectedOutcome("several keys match the token, which has no kid");
  if (error instanceof errors.JWKSNoMatchingKey) return uncachedOutcome(missingKeyOutcome(keys, undefined));
  if (error instanceof KeysUnavailableError) return uncachedOutcome(missingKeyOutcome(keys, error.retryAfterS));
  const isEarly = error instanceof errors.JWTClaimValidationFailed && error.claim === "nbf";
  return isEarly ? uncachedOutcome({ kind: "invalid", reason }) : rejectedOutcome(reason);
}

// If the keys may be outdated, the token is not invalid, but cannot be verified right now.
function missingKeyOutcome(
  { problem, retryAfterS: backOffS }: IssuerKeys,
  fetchableAfterS: number | undefined,
): TokenOutcome {
  const retryAfterS = fetchableAfterS ?? backOffS;
  if (problem === undefined && retryAfterS === undefined)
    return { kind: "invalid", reason: "the issuer has no key that matches the token" };
  return {
    kind: "unavailable",
    reason: problem ?? "no known key matches the token, and newer keys cannot be fetched",
    retryAfterS: retryAfterS ?? 1,
  };
}

function rejectedOutcome(reason: string, kind: "invalid" | "expired" = "invalid"): ExpiringOutcome {
  const nowMs = Date.now();
  return { outcome: { kind, reason }, fromMs: nowMs, untilMs: nowMs + rejectedTtlMs };
}

function uncachedOutcome(outcome: TokenOutcome): ExpiringOutcome {
  return { outcome, untilMs: 0 };
}
