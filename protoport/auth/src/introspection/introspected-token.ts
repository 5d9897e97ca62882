import type { JsonObject } from "../json-object.ts";
import type { ExpiringOutcome } from "../outcome-cache.ts";
import { clockSkewS, isSubject, readScopes, subjectMaxChars } from "../token-claims.ts";
import type { TokenOutcome } from "../token-verifier.ts";

/** The requirements on an active token. */
export interface IntrospectionRequirements {
  /** `aud` must contain one of the items. `undefined` skips the check. Safe if all tokens are for this service. */
  readonly audiences: readonly string[] | undefined;
  /** The member that identifies the caller if the response has no `sub`. `undefined` rejects tokens without `sub`. */
  readonly subjectClaim: string | undefined;
  /** Whether a token is limited to its scopes. If false, a token has every scope. */
  readonly enforceScopes: boolean;
}

/** Milliseconds for which an active token is cached, even if revoked. 30 s avoid nearly all requests. */
export const activeTtlMs = 30_000;

/** Milliseconds for which an inactive token is cached. Short: a provider's replica may not know a new token yet. */
export const inactiveTtlMs = 10_000;

/**
 * Returns an introspection response's outcome (RFC 7662 §2.2), or `undefined` when the response is not valid. The only
 * cached refusal is "not active". Cached outcomes expire by `performance.now()`, so that setting back the wall clock
 * does not extend their use.
 */
export function evaluateIntrospection(
  response: JsonObject,
  issuer: string,
  requirements: IntrospectionRequirements,
): ExpiringOutcome | undefined {
  const { active, sub, iss, exp, scope } = response;
  if (active === false)
    return { outcome: invalidOutcome("the token is not active"), untilMs: performance.now() + inactiveTtlMs };
  if (active !== true) return undefined;
  const problem = problemOf(response, requirements);
  if (problem !== undefined) return { outcome: problem, untilMs: 0 };
  const { subjectClaim } = requirements;
  if (sub === undefined && subjectClaim === undefined)
    return { outcome: invalidOutcome('the response has no "sub", and no other claim is configured'), untilMs: 0 };
  const claim = sub === undefined && subjectClaim !== undefined ? subjectClaim : "sub";
  const subject = response[claim];
  if (!isSubject(subject))
    return { outcome: invalidOutcome(`"${claim}" must be a string of 1 to ${subjectMaxChars} characters`), untilMs: 0 };
  const outcome: TokenOutcome = {
    kind: "principal",
    subject,
    issuer: typeof iss === "string" ? iss : issuer,
    scopes: requirements.enforceScopes ? new Set(readScopes(scope)) : "all",
  };
  const remainingMs = typeof exp === "number" ? exp * 1000 - Date.now() : Number.POSITIVE_INFINITY;
  return { outcome, untilMs: performance.now() + Math.min(remainingMs, activeTtlMs) };
}

function problemOf(response: JsonObject, { audiences }: IntrospectionRequirements): TokenOutcome | undefined {
  const { exp, nbf, aud, cnf, token_type: type } = response;
  const nowS = Date.now() / 1000;
  if (exp !== undefined && !(typeof exp === "number" && Number.isFinite(exp)))
    return invalidOutcome('"exp" must be a NumericDate');
  if (exp !== undefined && exp + clockSkewS <= nowS) return { kind: "expired", reason: '"exp" is in the past' };
  if (nbf !== undefined && !(typeof nbf === "number" && nbf - clockSkewS <= nowS))
    return invalidOutcome('"nbf" must be a NumericDate in the past');
  // The token is valid only with a proof of possession, which is not supported (RFC 7800 §3.1 and RFC 9449).
  if (cnf !== undefined) return invalidOutcome('the token is bound to a key ("cnf"), which is not supported');
  if (typeof type === "string" && type.toLowerCase() === "dpop")
    return invalidOutcome("the token is not a bearer token");
  const tokenAudiences: readonly unknown[] = Array.isArray(aud) ? aud : [aud];
  if (audiences !== undefined && !audiences.some((audience) => tokenAudiences.includes(audience)))
    return invalidOutcome('"aud" contains no accepted audience');
  return undefined;
}

function invalidOutcome(reason: string): TokenOutcome {
  return { kind: "invalid", reason };
}
