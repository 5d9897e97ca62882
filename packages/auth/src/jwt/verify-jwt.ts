import { errors, jwtVerify, type JWTVerifyGetKey, type JWTVerifyResult } from "jose";

import type { TimedOutcome } from "../outcome-cache.ts";
import { mayBeMisread } from "../json-object.ts";
import { clockSkewS, isSubject, readScopes, subjectMaxChars } from "../token-claims.ts";
import type { TokenOutcome } from "../token-verifier.ts";
import { type IssuerKeys, KeysUnavailable } from "./issuer-keys.ts";
import type { JwtAlgorithm } from "./jwt-algorithm.ts";

/** An issuer whose tokens are accepted, and what they must fulfil. */
export interface TrustedIssuer {
  /** The exact value of `iss`. */
  readonly issuer: string;
  /** `aud` must contain one of these: a token for another service is not for us. */
  readonly audiences: readonly string[];
  /**
   * The claims that contain the scopes of a token; `undefined` grants every scope, because many providers issue none.
   */
  readonly scopeClaims: readonly string[] | undefined;
  /** The allowed values of `alg`. */
  readonly algorithms: readonly JwtAlgorithm[];
  /**
   * Whether `typ` must be `at+jwt` (RFC 9068 §4). Otherwise `JWT` and no type are accepted too, since many providers
   * send those.
   */
  readonly demandAccessTokenType: boolean;
  readonly keys: IssuerKeys;
}

/** How long a final refusal is cached, in milliseconds: a client that repeats a bad token does so in a loop. */
const refusedForMs = 60_000;

/**
 * Verifies the signature of a token, then its header and claims; a bad token is an outcome, never an exception.
 *
 * The outcome is valid until the given time, as long as the key is trusted: until the token expires if it is good, for
 * a minute if it is bad, and not at all where time alone may change it (`nbf`, `iat`, keys that cannot be had).
 */
export async function verifyJwt(text: string, trusted: TrustedIssuer): Promise<TimedOutcome> {
  // An id that is not a text names no key: some providers send a number.
  const findKey: JWTVerifyGetKey = ({ kid, ...header }, jws) =>
    trusted.keys.find(typeof kid === "string" ? { ...header, kid } : header, jws);
  try {
    const verified = await jwtVerify(text, findKey, {
      algorithms: [...trusted.algorithms],
      issuer: trusted.issuer,
      audience: [...trusted.audiences],
      clockTolerance: clockSkewS,
    });
    return judgeClaims(verified, trusted);
  } catch (error) {
    return judgeError(error, trusted.keys);
  }
}

/** Checks what `jwtVerify` does not. */
function judgeClaims({ payload, protectedHeader }: JWTVerifyResult, trusted: TrustedIssuer): TimedOutcome {
  const { iss, sub, exp, iat, cnf } = payload;
  if (!isFitType(protectedHeader.typ, trusted)) return refused('"typ" is not the type of an access token');
  if (!isSubject(sub)) return refused(`"sub" must be a string of 1 to ${subjectMaxChars} characters`);
  // 1e999 is a valid number in JSON, and is parsed as Infinity.
  if (exp === undefined || !Number.isFinite(exp)) return refused('"exp" must be a NumericDate');
  if (iat !== undefined && !(typeof iat === "number" && iat <= Date.now() / 1000 + clockSkewS)) {
    return notNow({ kind: "invalid", reason: '"iat" must be a NumericDate in the past' });
  }
  // A `crit` or a `cnf` could be missed.
  if (mayBeMisread(protectedHeader) || mayBeMisread(payload)) return refused("a header parameter or claim has a name with a backslash");
  // RFC 7800 §3.1: such a token is valid only together with a proof of its key, which we do not support.
  if (cnf !== undefined) return refused('the token is bound to a key ("cnf"), which is not supported');
  const scopes = trusted.scopeClaims?.flatMap((claim) => readScopes(payload[claim]));
  const outcome: TokenOutcome = {
    kind: "principal",
    subject: sub,
    issuer: iss,
    scopes: scopes === undefined ? "all" : new Set(scopes),
  };
  return { outcome, untilMs: (exp + clockSkewS) * 1000 };
}

// `typ` is a media type whose "application/" may be omitted (RFC 7515 §4.1.9). Another type (`logout+jwt`, `dpop+jwt`)
// means that the token is not an access token (RFC 8725 §3.11); what is not a text names no type.
function isFitType(type: unknown, { demandAccessTokenType }: TrustedIssuer): boolean {
  const name = typeof type === "string" ? type.toLowerCase().replace(/^application\//, "") : undefined;
  return name === "at+jwt" || (!demandAccessTokenType && (name === undefined || name === "jwt"));
}

function judgeError(error: unknown, keys: IssuerKeys): TimedOutcome {
  const reason = error instanceof Error ? error.message : String(error);
  if (error instanceof errors.JWTExpired) return refused(reason, "expired");
  if (error instanceof errors.JWKSMultipleMatchingKeys) return refused("several keys match the token, and it names none of them");
  if (error instanceof errors.JWKSNoMatchingKey || error instanceof KeysUnavailable) return notNow(keyIsMissing(keys));
  const isEarly = error instanceof errors.JWTClaimValidationFailed && error.claim === "nbf";
  return isEarly ? notNow({ kind: "invalid", reason }) : refused(reason);
}

// While the key that signed a token may exist, the token is not called bad: it cannot be checked right now.
function keyIsMissing({ problem, retryAfterS }: IssuerKeys): TokenOutcome {
  if (problem === undefined && retryAfterS === undefined)
    return { kind: "invalid", reason: "the issuer has no key that matches the token" };
  return {
    kind: "unavailable",
    reason: problem ?? "no known key matches the token, and newer keys cannot be fetched",
    retryAfterS: retryAfterS ?? 1,
  };
}

function refused(reason: string, kind: "invalid" | "expired" = "invalid"): TimedOutcome {
  return { outcome: { kind, reason }, untilMs: Date.now() + refusedForMs };
}

function notNow(outcome: TokenOutcome): TimedOutcome {
  return { outcome, untilMs: 0 };
}
