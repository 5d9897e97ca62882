import { errors, jwtVerify, type CryptoKey, type JWTPayload } from "jose";

import type { KnownOutcome } from "../known-outcomes.ts";
import { clockSkewS, isSubject, readScopes, subjectMaxChars } from "../token-claims.ts";
import type { TokenOutcome } from "../token-verifier.ts";
import type { JwtAlgorithm } from "./jwt-algorithm.ts";

/** What a token must be, besides signed. */
export interface JwtDemands {
  /** What `iss` must be, to the letter. */
  readonly issuer: string;
  /** `aud` must name one of these: a token for another service is not for us. */
  readonly audiences: readonly string[];
  /** The claims that hold the scopes of a token; with `undefined` it has them all, as many providers have none to give. */
  readonly scopeClaims: readonly string[] | undefined;
}

/** How long a refusal that nothing can change is remembered, in milliseconds: a client that repeats a bad token does so in a loop. */
const refusedForMs = 60_000;

/**
 * Verifies the signature of a token by its key, then its claims; a bad token is an outcome, never an exception.
 *
 * The outcome holds until the time given with it, as long as the key is trusted: a good one until the
 * token expires, a refusal for a minute, and not at all where time alone may change it (`nbf`, `iat`).
 */
export async function verifyJwt(
  text: string,
  key: CryptoKey,
  algorithm: JwtAlgorithm,
  demands: JwtDemands,
): Promise<KnownOutcome> {
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

/** Judges what `jwtVerify` leaves open. */
function judgeClaims(payload: JWTPayload, { scopeClaims }: JwtDemands): KnownOutcome {
  const { iss, sub, exp, iat, cnf } = payload;
  if (!isSubject(sub)) return refused(`"sub" is not a text of 1 to ${subjectMaxChars} characters`);
  // 1e999 is a number in JSON, and Infinity once it is read.
  if (exp === undefined || !Number.isFinite(exp)) return refused('"exp" is not a date');
  if (iat !== undefined && !(typeof iat === "number" && iat <= Date.now() / 1000 + clockSkewS)) {
    return { outcome: { kind: "invalid", reason: '"iat" is not in the past' }, untilMs: 0 };
  }
  // RFC 7800 §3.1: such a token is good only with a proof of its key, for which nobody here asks.
  if (cnf !== undefined) return refused('the token is bound to a key ("cnf")');
  const scopes =
    scopeClaims === undefined ? "all" : new Set(scopeClaims.flatMap((claim) => readScopes(payload[claim])));
  const outcome: TokenOutcome = { kind: "principal", subject: sub, issuer: iss, scopes };
  return { outcome, untilMs: (exp + clockSkewS) * 1000 };
}

function judgeError(error: unknown): KnownOutcome {
  if (error instanceof errors.JWTExpired) {
    return { outcome: { kind: "expired", reason: error.message }, untilMs: Date.now() + refusedForMs };
  }
  const reason = error instanceof Error ? error.message : String(error);
  const isEarly = error instanceof errors.JWTClaimValidationFailed && error.claim === "nbf";
  return isEarly ? { outcome: { kind: "invalid", reason }, untilMs: 0 } : refused(reason);
}

function refused(reason: string): KnownOutcome {
  return { outcome: { kind: "invalid", reason }, untilMs: Date.now() + refusedForMs };
}
