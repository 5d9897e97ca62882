import { type OperatorLog, notParsed, parsed, type ParseResult, type AuthErrorCode } from "../inputs/index.ts";
import { fetchText, withoutQuery } from "../fetch-text.ts";
import { parseJsonObject } from "../json-object.ts";
import { OutcomeCache, type TimedOutcome } from "../outcome-cache.ts";
import type { PresentedToken, TokenOutcome, TokenVerifier } from "../token-verifier.ts";
import { judgeIntrospection, type IntrospectionDemands } from "./introspected-token.ts";

/** An introspection endpoint (RFC 7662) and our credentials there. */
export interface IntrospectionEndpoint extends IntrospectionDemands {
  readonly url: URL;
  readonly clientId: string;
  /** Returns the current client secret. */
  readonly clientSecret: () => string;
  /** How long one request may take, in milliseconds. */
  readonly timeoutMs: number;
}

/** Why the endpoint did not say whether a token is active. */
interface Failure {
  readonly kind: "failure";
  readonly problem: string;
  /** Whether the endpoint as a whole failed, rather than only for this token. */
  readonly endpointFailed: boolean;
}

/** The most concurrent requests to the endpoint: a provider that hangs blocks this many calls and no more. */
export const askingMax = 64;

/**
 * Distinct tokens in a row for which the endpoint must fail before it is considered down.
 *
 * Any client can make us ask about anything, so a single failure may be due to the token.
 */
export const failuresMax = 5;

/**
 * How long an endpoint that is down is left alone, and a token for which it failed is not retried, in milliseconds.
 */
const pauseMs = 1_000;

/**
 * How long an endpoint that is down is reported as a problem, in milliseconds. Not until the next success: a server
 * that is not ready gets no calls, and would never find out that the provider is back.
 */
export const problemForMs = 10_000;

const errorCode: AuthErrorCode = "ERR_INTROSPECTION_UNAVAILABLE";

/** Creates a verifier that asks the endpoint about every token that it has not cached. */
export function createIntrospectionVerifier(endpoint: IntrospectionEndpoint, log: OperatorLog): TokenVerifier {
  const known = new OutcomeCache<TimedOutcome>();
  /** For tokens on which the endpoint failed. */
  const failed = new OutcomeCache<TimedOutcome>();
  const health = new EndpointHealth(endpoint.url, log);
  const closed = new AbortController();
  let asking = 0;

  function verify(token: PresentedToken): TokenOutcome | Promise<TokenOutcome> {
    const nowMs = performance.now();
    const timed = known.get(token.digest, nowMs) ?? failed.get(token.digest, nowMs);
    return timed?.outcome ?? known.askOnce(token.digest, () => askInTurn(token));
  }

  async function askInTurn(token: PresentedToken): Promise<TokenOutcome> {
    if (health.isPaused) return unavailable(`the introspection endpoint failed recently: ${health.failure}`);
    if (asking >= askingMax) return unavailable(`${askingMax} introspection requests are already in flight`);
    asking += 1;
    try {
      return await ask(token);
    } finally {
      asking -= 1;
    }
  }

  async function ask({ text, digest }: PresentedToken): Promise<TokenOutcome> {
    const signal = AbortSignal.any([AbortSignal.timeout(endpoint.timeoutMs), closed.signal]);
    const answer = await introspect(endpoint, text, signal);
    if (answer.kind === "failure") return fail(answer, digest);
    health.worked();
    known.set(digest, answer.value);
    return answer.value.outcome;
  }

  function fail({ problem, endpointFailed }: Failure, digest: string): TokenOutcome {
    if (endpointFailed) health.failed(problem, digest);
    const outcome = unavailable(problem);
    failed.set(digest, { outcome, untilMs: performance.now() + pauseMs });
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

/** Whether an endpoint is up. Times are those of `performance.now()`: where a wall clock is set back, none gets longer. */
class EndpointHealth {
  /** Why it failed last; `undefined` if it has answered since. */
  failure: string | undefined;
  readonly #url: URL;
  readonly #log: OperatorLog;
  /** The tokens on which it has failed since it last answered, or was last found to be down. */
  readonly #failedOn = new Set<string>();
  #awayAtMs = Number.NEGATIVE_INFINITY;

  constructor(url: URL, log: OperatorLog) {
    this.#url = url;
    this.#log = log;
  }

  /** Whether it is left alone, because it is down. */
  get isPaused(): boolean {
    return performance.now() - this.#awayAtMs < pauseMs;
  }

  /** Why it is down, for an operator. */
  get problem(): string | undefined {
    return performance.now() - this.#awayAtMs < problemForMs ? this.failure : undefined;
  }

  worked(): void {
    const fields = { endpoint: withoutQuery(this.#url) };
    if (this.failure !== undefined) this.#log.info(fields, "token introspection recovered");
    this.failure = undefined;
    this.#awayAtMs = Number.NEGATIVE_INFINITY;
    this.#failedOn.clear();
  }

  failed(problem: string, digest: string): void {
    const fields = { errorCode, endpoint: withoutQuery(this.#url), problem };
    if (problem !== this.failure) this.#log.warn(fields, "cannot introspect tokens");
    this.failure = problem;
    this.#failedOn.add(digest);
    if (this.#failedOn.size < failuresMax) return;
    this.#awayAtMs = performance.now();
    this.#failedOn.clear();
  }
}

async function introspect(
  endpoint: IntrospectionEndpoint,
  token: string,
  signal: AbortSignal,
): Promise<Failure | { readonly kind: "value"; readonly value: TimedOutcome }> {
  const { url, clientId, clientSecret } = endpoint;
  const header = { authorization: `Basic ${toBasicCredentials(clientId, clientSecret())}` };
  const form = new URLSearchParams({ token, token_type_hint: "access_token" });
  const text = await fetchText({ url, header, form, signal });
  const answer = text.kind === "value" ? judge(text.value, endpoint) : text;
  if (answer.kind === "value") return answer;
  return { kind: "failure", problem: answer.problems.join("; "), endpointFailed: isEndpointFailure(text.httpStatus) };
}

function judge(text: string, endpoint: IntrospectionEndpoint): ParseResult<TimedOutcome> {
  const what = `the response of ${withoutQuery(endpoint.url)}`;
  const answer = parseJsonObject(text, what);
  if (answer.kind === "problems") return answer;
  const known = judgeIntrospection(answer.value, endpoint.url.origin, endpoint);
  return known === undefined ? notParsed(`${what} has no boolean "active"`) : parsed(known);
}

// No response at all, our own credentials refused (RFC 7662 §2.3), too many requests, a server error. Any other
// response that §2.2 does not define, such as the 403 of a firewall, is about the token that was sent.
function isEndpointFailure(httpStatus: number | undefined): boolean {
  return httpStatus === undefined || httpStatus === 401 || httpStatus === 429 || httpStatus >= 500;
}

// RFC 6749 §2.3.1: both are form-encoded before they are joined, so that a colon in the id cannot end it.
function toBasicCredentials(clientId: string, clientSecret: string): string {
  const [id, secret] = [clientId, clientSecret].map((text) => new URLSearchParams({ "": text }).toString().slice(1));
  return Buffer.from(`${id}:${secret}`).toString("base64");
}

function unavailable(reason: string): TokenOutcome {
  return { kind: "unavailable", reason, retryAfterS: pauseMs / 1000 };
}
