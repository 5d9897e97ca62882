import { type OperatorLog, withProblems, parsed, type ParseResult, type AuthErrorCode } from "../inputs/index.ts";
import { fetchText, withoutQuery } from "../fetch-text.ts";
import { parseJsonObject } from "../json-object.ts";
import { OutcomeCache, type ExpiringOutcome } from "../outcome-cache.ts";
import type { PresentedToken, TokenOutcome, TokenVerifier } from "../token-verifier.ts";
import { evaluateIntrospection, type IntrospectionRequirements } from "./introspected-token.ts";

/** An introspection endpoint (RFC 7662) and the credentials for it. */
export interface IntrospectionEndpoint extends IntrospectionRequirements {
  readonly url: URL;
  readonly clientId: string;
  /** Returns the current client secret. */
  readonly clientSecret: () => string;
  /** Timeout for one request, in milliseconds. */
  readonly timeoutMs: number;
}

interface Failure {
  readonly kind: "failure";
  readonly problem: string;
  /** Whether requests for other tokens are expected to fail too. */
  readonly endpointFailed: boolean;
}

/** Maximum concurrent requests to the endpoint. A provider that hangs delays at most this many tokens. */
export const inFlightMax = 64;

/** Different tokens in a row that must fail before the endpoint counts as down. A client may repeat one bad token. */
export const failuresMax = 5;

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
    if (inFlight >= inFlightMax)
      return unavailableOutcome(`${inFlightMax} introspection requests are already in flight`);
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

  function fail({ problem, endpointFailed }: Failure, digest: string): TokenOutcome {
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
    if (this.#failedTokens.size < failuresMax) return;
    this.#downAtMs = performance.now();
    this.#failedTokens.clear();
  }
}

async function sendRequest(
  endpoint: IntrospectionEndpoint,
  token: string,
  signal: AbortSignal,
): Promise<Failure | { readonly kind: "value"; readonly value: ExpiringOutcome }> {
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
