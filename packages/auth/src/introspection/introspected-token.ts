import type { JsonObject } from "../json-object.ts";
import type { TimedOutcome } from "../outcome-cache.ts";
import { clockSkewS, isSubject, readScopes, subjectMaxChars } from "../token-claims.ts";
import type { TokenOutcome } from "../token-verifier.ts";

/** What an active token must fulfil. */
export interface IntrospectionDemands {
  /**
   * `aud` must contain one of these; not checked when `undefined`, because an endpoint may only answer about our own
   * tokens.
   */
  readonly audiences: readonly string[] | undefined;
  /** Whether the scopes of the token count; otherwise it has every scope. */
  readonly demandScopes: boolean;
}

/**
 * How long an active token is cached, in milliseconds, and so how long it still works once revoked: 30 s saves the
 * provider nearly every request about a busy client.
 */
export const activeForMs = 30_000;

/**
 * How long an inactive token is cached, in milliseconds. Shorter, because one replica of the provider may be asked
 * about a token before it has heard of it from another.
 */
export const inactiveForMs = 10_000;

/**
 * Judges the response of an introspection endpoint (RFC 7662 §2.2); returns `undefined` when it is not one.
 *
 * Only a token that is known to be inactive is cached as bad. The outcome expires by `performance.now()`: where a wall
 * clock is set back, none is cached for longer.
 */
export function judgeIntrospection(
  answer: JsonObject,
  issuer: string,
  demands: IntrospectionDemands,
): TimedOutcome | undefined {
  const { active, sub, iss, exp, scope } = answer;
  if (active === false)
    return { outcome: invalid("the token is not active"), untilMs: performance.now() + inactiveForMs };
  if (active !== true) return undefined;
  const problem = problemOf(answer, demands);
  if (problem !== undefined) return { outcome: problem, untilMs: 0 };
  if (!isSubject(sub)) return { outcome: invalid(`"sub" must be a string of 1 to ${subjectMaxChars} characters`), untilMs: 0 };
  const outcome: TokenOutcome = {
    kind: "principal",
    subject: sub,
    issuer: typeof iss === "string" ? iss : issuer,
    scopes: demands.demandScopes ? new Set(readScopes(scope)) : "all",
  };
  const leftMs = typeof exp === "number" ? exp * 1000 - Date.now() : Number.POSITIVE_INFINITY;
  return { outcome, untilMs: performance.now() + Math.min(leftMs, activeForMs) };
}

function problemOf(answer: JsonObject, { audiences }: IntrospectionDemands): TokenOutcome | undefined {
  const { exp, nbf, aud, cnf, token_type: type } = answer;
  const nowS = Date.now() / 1000;
  if (exp !== undefined && !(typeof exp === "number" && Number.isFinite(exp))) return invalid('"exp" must be a NumericDate');
  if (exp !== undefined && exp + clockSkewS <= nowS) return { kind: "expired", reason: '"exp" is in the past' };
  if (nbf !== undefined && !(typeof nbf === "number" && nbf - clockSkewS <= nowS))
    return invalid('"nbf" must be a NumericDate in the past');
  // RFC 7800 §3.1 and RFC 9449: such a token is valid only together with a proof of its key, which we do not support.
  if (cnf !== undefined) return invalid('the token is bound to a key ("cnf"), which is not supported');
  if (typeof type === "string" && type.toLowerCase() === "dpop") return invalid("the token is not a bearer token");
  const named: readonly unknown[] = Array.isArray(aud) ? aud : [aud];
  if (audiences !== undefined && !audiences.some((audience) => named.includes(audience)))
    return invalid('"aud" contains no accepted audience');
  return undefined;
}

function invalid(reason: string): TokenOutcome {
  return { kind: "invalid", reason };
}
