import { errors, jwtVerify, type CryptoKey, type JWTPayload } from "jose";

import type { TimedOutcome } from "../outcome-cache.ts";
import { clockSkewS, isSubject, readScopes, subjectMaxChars } from "../token-claims.ts";
import type { TokenOutcome } from "../token-verifier.ts";
import type { JwtAlgorithm } from "./jwt-algorithm.ts";

/** What a token must fulfil apart from its signature. */
export interface JwtDemands {
  /** The exact value of `iss`. */
  readonly issuer: string;
  /** `aud` must contain one of these: a token for another service is not for us. */
  readonly audiences: readonly string[];
  /**
   * The claims that contain the scopes of a token; `undefined` grants every scope, because many providers issue none.
   */
  readonly scopeClaims: readonly string[] | undefined;
}

/** How long a final refusal is cached, in milliseconds: a client that repeats a bad token does so in a loop. */
const refusedForMs = 60_000;

/**
 * Verifies the signature of a token, then its claims; a bad token is an outcome, never an exception.
 *
 * The outcome is valid until the given time, as long as the key is trusted: until the token expires if it is good, for
 * a minute if it is bad, and not at all where time alone may change it (`nbf`, `iat`).
 */
export async function verifyJwt(
  text: string,
  key: CryptoKey,
  algorithm: JwtAlgorithm,
  demands: JwtDemands,
): Promise<TimedOutcome> {
  try {
    const { payload } = await jwtVerify(text, key, {
      algorithms: [algorithm],
      issuer: demands.issuer,
      audience: [...demands.audiences],
      clockTolerance: clockSkewS,
    });
    return judgeClaims(payload, demands);
  } catch (error) {
    return judgeError(error);
  }
}

/** Checks what `jwtVerify` does not. */
function judgeClaims(payload: JWTPayload, { scopeClaims }: JwtDemands): TimedOutcome {
  const { iss, sub, exp, iat, cnf } = payload;
  if (!isSubject(sub)) return refused(`"sub" is not a text of 1 to ${subjectMaxChars} characters`);
  // 1e999 is a valid number in JSON, and is parsed as Infinity.
  if (exp === undefined || !Number.isFinite(exp)) return refused('"exp" is not a date');
  if (iat !== undefined && !(typeof iat === "number" && iat <= Date.now() / 1000 + clockSkewS)) {
    return { outcome: { kind: "invalid", reason: '"iat" is not in the past' }, untilMs: 0 };
  }
  // RFC 7800 §3.1: such a token is valid only together with a proof of its key, which we do not support.
  if (cnf !== undefined) return refused('the token is bound to a key ("cnf")');
  const scopes =
    scopeClaims === undefined ? "all" : new Set(scopeClaims.flatMap((claim) => readScopes(payload[claim])));
  const outcome: TokenOutcome = { kind: "principal", subject: sub, issuer: iss, scopes };
  return { outcome, untilMs: (exp + clockSkewS) * 1000 };
}

function judgeError(error: unknown): TimedOutcome {
  if (error instanceof errors.JWTExpired) {
    return { outcome: { kind: "expired", reason: error.message }, untilMs: Date.now() + refusedForMs };
  }
  const reason = error instanceof Error ? error.message : String(error);
  const isEarly = error instanceof errors.JWTClaimValidationFailed && error.claim === "nbf";
  return isEarly ? { outcome: { kind: "invalid", reason }, untilMs: 0 } : refused(reason);
}

function refused(reason: string): TimedOutcome {
  return { outcome: { kind: "invalid", reason }, untilMs: Date.now() + refusedForMs };
}
