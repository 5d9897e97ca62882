import type { AuthLog } from "../auth-log.ts";
import { fetchText, placeOf } from "../fetch-text.ts";
import { parseJsonObject } from "../json-object.ts";
import { KnownOutcomes, type KnownOutcome } from "../known-outcomes.ts";
import { unparsed, type Parsed } from "../parsed.ts";
import type { PresentedToken, TokenOutcome, TokenVerifier } from "../token-verifier.ts";
import { judgeIntrospection, type IntrospectionDemands } from "./introspected-token.ts";

/** An endpoint that knows tokens (RFC 7662), and who we are to it. */
export interface IntrospectionEndpoint extends IntrospectionDemands {
  readonly url: URL;
  readonly clientId: string;
  /** The client's secret as it is now. */
  readonly clientSecret: () => string;
  /** How long one question may take, in milliseconds. */
  readonly timeoutMs: number;
}

/** Questions under way at a time; a provider that hangs holds up so many calls and no more. */
const askingMax = 64;

/** After a question that failed nothing is asked for so long, in milliseconds. */
const pauseMs = 1_000;

/**
 * How long a failure is told as a problem, in milliseconds. Not until the next success: a server that
 * is not ready is asked nothing, and would never find out that the provider is back.
 */
const problemForMs = 10_000;

/** Returns a verifier that asks the endpoint about every token it does not remember. */
export function introspectionVerifier(endpoint: IntrospectionEndpoint, log: AuthLog): TokenVerifier {
  const known = new KnownOutcomes<KnownOutcome>();
  const closed = new AbortController();
  let asking = 0;
  let failedAtMs = Number.NEGATIVE_INFINITY;
  let failure: string | undefined;

  function verify(token: PresentedToken): TokenOutcome | Promise<TokenOutcome> {
    return known.get(token.digest, Date.now())?.outcome ?? known.askOnce(token.digest, () => askInTurn(token));
  }

  async function askInTurn(token: PresentedToken): Promise<TokenOutcome> {
    if (Date.now() - failedAtMs < pauseMs) return unavailable(`the introspection endpoint failed just now: ${failure}`);
    if (asking >= askingMax) return unavailable(`${askingMax} questions are with the introspection endpoint already`);
    asking += 1;
    try {
      return await ask(token);
    } finally {
      asking -= 1;
    }
  }

  async function ask(token: PresentedToken): Promise<TokenOutcome> {
    const signal = AbortSignal.any([AbortSignal.timeout(endpoint.timeoutMs), closed.signal]);
    const answer = await introspect(endpoint, token.text, signal);
    if (answer.kind === "problems") return fail(answer.problems.join("; "));
    if (failure !== undefined) log.info({ endpoint: placeOf(endpoint.url) }, "tokens can be introspected again");
    failure = undefined;
    known.set(token.digest, answer.value);
    return answer.value.outcome;
  }

  function fail(problem: string): TokenOutcome {
    if (problem !== failure) log.warn({ endpoint: placeOf(endpoint.url), problem }, "tokens cannot be introspected");
    failure = problem;
    failedAtMs = Date.now();
    return unavailable(problem);
  }

  return {
    verify,
    get problem() {
      return Date.now() - failedAtMs < problemForMs ? failure : undefined;
    },
    close: () => closed.abort(),
  };
}

async function introspect(
  endpoint: IntrospectionEndpoint,
  token: string,
  signal: AbortSignal,
): Promise<Parsed<KnownOutcome>> {
  const { url, clientId, clientSecret } = endpoint;
  const header = { authorization: `Basic ${toBasicCredentials(clientId, clientSecret())}` };
  const form = new URLSearchParams({ token, token_type_hint: "access_token" });
  const text = await fetchText({ url, header, form, signal });
  if (text.kind === "problems") return text;
  const answer = parseJsonObject(text.value, `the answer of ${placeOf(url)}`);
  if (answer.kind === "problems") return answer;
  const value = judgeIntrospection(answer.value, url.origin, endpoint);
  return value === undefined
    ? unparsed(`the answer of ${placeOf(url)} does not say whether the token is active`)
    : { kind: "value", value };
}

// RFC 6749 §2.3.1: both are form-encoded before they are put together, so that a colon in the one does not end it.
function toBasicCredentials(clientId: string, clientSecret: string): string {
  const [id, secret] = [clientId, clientSecret].map((text) => new URLSearchParams({ "": text }).toString().slice(1));
  return Buffer.from(`${id}:${secret}`).toString("base64");
}

function unavailable(reason: string): TokenOutcome {
  return { kind: "unavailable", reason, retryAfterS: Math.ceil(pauseMs / 1000) };
}
