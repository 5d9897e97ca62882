import { fetchText, withoutQuery } from "../fetch-text.ts";
import { type AuthErrorCode, type OperatorLog, parsed, type ParseResult, withProblems } from "../inputs/index.ts";
import { type JsonObject, parseJsonObject } from "../json-object.ts";
import { type ExpiringOutcome, OutcomeCache } from "../outcome-cache.ts";
import { clockSkewS, isSubject, readScopes, maxSubjectChars } from "../token-claims.ts";
import type { PresentedToken, TokenOutcome, TokenVerifier } from "../token-verifier.ts";

/** An introspection endpoint (RFC 7662) and the credentials for it. */
interface IntrospectionEndpoint extends IntrospectionRequirements {
  readonly url: URL;
  readonly clientId: string;
  /** Returns the current client secret. */
  readonly clientSecret: () => string;
  /** Timeout for one request, in milliseconds. */
  readonly timeoutMs: number;
}

interface IntrospectionFailure {
  readonly kind: "failure";
  readonly problem: string;
  /** Whether requests for other tokens are expected to fail too. */
  readonly endpointFailed: boolean;
}

/** Maximum concurrent requests to the endpoint. A provider that hangs delays at most this many tokens. */
export const maxInFlight = 64;

/** Different tokens in a row that must fail before the endpoint counts as down. A client may repeat one bad token. */
export const maxFailures = 5;

/** Milliseconds until requests are sent again after the endpoint went down or failed for a token. */
const pauseMs = 1_000;

/**
 * Milliseconds for which a failed endpoint makes the server not ready. The time is limited, because a server that is
 * not ready gets no calls, and so sends no request that could detect the endpoint's recovery.
 */
export const unhealthyForMs = 10_000;

const errorCode: AuthErrorCode = "ERR_INTROSPECTION_UNAVAILABLE";

/** Creates a verifier that introspects tokens and caches the outcomes. */
export function createIntrospectionVerifier(endpoint: IntrospectionEndpoint, log: OperatorLog): TokenVerifier {
  const cache = new OutcomeCache<ExpiringOutcome>();
  /** The tokens for which the endpoint failed recently. */
  const failures = new OutcomeCache<ExpiringOutcome>();
  const health = new EndpointHealth(endpoint.url, log);
  const closed = new AbortController();
  let inFlight = 0;

  function verify(token: PresentedToken): TokenOutcome | Promise<TokenOutcome> {
    const nowMs = performance.now();
    const cached = cache.get(token.digest, nowMs) ?? failures.get(token.digest, nowMs);
    return cached?.outcome ?? cache.verifyOnce(token.digest, () => introspectWithinLimit(token));
  }

  async function introspectWithinLimit(token: PresentedToken): Promise<TokenOutcome> {
    if (health.isPaused) return unavailableOutcome(`the introspection endpoint failed recently: ${health.lastFailure}`);
    if (inFlight >= maxInFlight)
      return unavailableOutcome(`${maxInFlight} introspection requests are already in flight`);
    inFlight += 1;
    try {
      return await introspect(token);
    } finally {
      inFlight -= 1;
    }
  }

  async function introspect({ text, digest }: PresentedToken): Promise<TokenOutcome> {
    const signal = AbortSignal.any([AbortSignal.timeout(endpoint.timeoutMs), closed.signal]);
    const result = await sendRequest(endpoint, text, signal);
    if (result.kind === "failure") return fail(result, digest);
    health.recordSuccess();
    cache.set(digest, result.value);
    return result.value.outcome;
  }

  function fail({ problem, endpointFailed }: IntrospectionFailure, digest: string): TokenOutcome {
    if (endpointFailed) health.recordFailure(problem, digest);
    const outcome = unavailableOutcome(problem);
    failures.set(digest, { outcome, untilMs: performance.now() + pauseMs });
    return outcome;
  }

  return {
    verify,
    get problem() {
      return health.problem;
    },
    close: () => closed.abort(),
  };
}

/** Records whether an endpoint is down. `performance.now()` measures the times, because it is never set back. */
class EndpointHealth {
  lastFailure: string | undefined;
  readonly #url: URL;
  readonly #log: OperatorLog;
  /** The tokens for which the endpoint has failed since the last success, or since it was last considered down. */
  readonly #failedTokens = new Set<string>();
  #downAtMs = Number.NEGATIVE_INFINITY;

  constructor(url: URL, log: OperatorLog) {
    this.#url = url;
    this.#log = log;
  }

  /** Whether the endpoint is down, so that no requests are sent. */
  get isPaused(): boolean {
    return performance.now() - this.#downAtMs < pauseMs;
  }

  get problem(): string | undefined {
    return performance.now() - this.#downAtMs < unhealthyForMs ? this.lastFailure : undefined;
  }

  recordSuccess(): void {
    const fields = { endpoint: withoutQuery(this.#url) };
    if (this.lastFailure !== undefined) this.#log.info(fields, "token introspection recovered");
    this.lastFailure = undefined;
    this.#downAtMs = Number.NEGATIVE_INFINITY;
    this.#failedTokens.clear();
  }

  recordFailure(problem: string, digest: string): void {
    const fields = { errorCode, endpoint: withoutQuery(this.#url), problem };
    if (problem !== this.lastFailure) this.#log.warn(fields, "cannot introspect tokens");
    this.lastFailure = problem;
    this.#failedTokens.add(digest);
    if (this.#failedTokens.size < maxFailures) return;
    this.#downAtMs = performance.now();
    this.#failedTokens.clear();
  }
}

async function sendRequest(
  endpoint: IntrospectionEndpoint,
  token: string,
  signal: AbortSignal,
): Promise<IntrospectionFailure | { readonly kind: "value"; readonly value: ExpiringOutcome }> {
  const { url, clientId, clientSecret } = endpoint;
  const header = { authorization: `Basic ${toBasicCredentials(clientId, clientSecret())}` };
  const form = new URLSearchParams({ token, token_type_hint: "access_token" });
  const text = await fetchText({ url, header, form, signal });
  const result = text.kind === "value" ? evaluate(text.value, endpoint) : text;
  if (result.kind === "value") return result;
  return { kind: "failure", problem: result.problems.join("; "), endpointFailed: isEndpointFailure(text.httpStatus) };
}

function evaluate(text: string, endpoint: IntrospectionEndpoint): ParseResult<ExpiringOutcome> {
  const responseName = `the response of ${withoutQuery(endpoint.url)}`;
  const response = parseJsonObject(text, responseName);
  if (response.kind === "problems") return response;
  const outcome = evaluateIntrospection(response.value, endpoint.url.origin, endpoint);
  return outcome === undefined ? withProblems(`${responseName} has no boolean "active"`) : parsed(outcome);
}

// The endpoint failed if it did not respond, refused the client credentials (RFC 7662 §2.3), limited the rate or had a
// server error. Other statuses may concern only the sent token, such as a firewall's 403.
function isEndpointFailure(httpStatus: number | undefined): boolean {
  return httpStatus === undefined || httpStatus === 401 || httpStatus === 429 || httpStatus >= 500;
}

// The client id may contain a colon, so id and secret are form-encoded before a colon joins them (RFC 6749 §2.3.1).
function toBasicCredentials(clientId: string, clientSecret: string): string {
  const [id, secret] = [clientId, clientSecret].map((text) => new URLSearchParams({ "": text }).toString().slice(1));
  return Buffer.from(`${id}:${secret}`).toString("base64");
}

function unavailableOutcome(reason: string): TokenOutcome {
  return { kind: "unavailable", reason, retryAfterS: pauseMs / 1000 };
}

/** The requirements on an active token. */
interface IntrospectionRequirements {
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
  const problem = claimsProblemOf(response, requirements);
  if (problem !== undefined) return { outcome: problem, untilMs: 0 };
  const { subjectClaim } = requirements;
  if (sub === undefined && subjectClaim === undefined)
    return { outcome: invalidOutcome('the response has no "sub", and no other claim is configured'), untilMs: 0 };
  const claim = sub === undefined && subjectClaim !== undefined ? subjectClaim : "sub";
  const subject = response[claim];
  if (!isSubject(subject))
    return { outcome: invalidOutcome(`"${claim}" must be a string of 1 to ${maxSubjectChars} characters`), untilMs: 0 };
  const outcome: TokenOutcome = {
    kind: "principal",
    subject,
    issuer: typeof iss === "string" ? iss : issuer,
    scopes: requirements.enforceScopes ? new Set(readScopes(scope)) : "all",
  };
  const remainingMs = typeof exp === "number" ? exp * 1000 - Date.now() : Number.POSITIVE_INFINITY;
  return { outcome, untilMs: performance.now() + Math.min(remainingMs, activeTtlMs) };
}

function claimsProblemOf(response: JsonObject, { audiences }: IntrospectionRequirements): TokenOutcome | undefined {
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
