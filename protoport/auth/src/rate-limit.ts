import { Code, ConnectError } from "@connectrpc/connect";
import { type Admit, type AdmitRequest, clientNetwork } from "@protoport/gateway";
import { Health } from "@protoport/gateway/health";
import { type OptionNames, refuseUnknownOptions, required } from "@protoport/gateway/options";
import type { AuthErrorCode } from "./inputs/index.ts";
import { principalKey } from "./token-verifier.ts";

/** Options for {@link createRateLimit}. */
export interface RateLimitOptions {
  /** The limit's name in messages and header fields: printable ASCII without quotation marks (sf-string). */
  readonly name: string;
  /** Maximum calls per second for each key, also in a burst. A rate below 1 allows one call in several seconds. */
  readonly callsPerSecond: number;
  /** The clock, in milliseconds. Defaults to `performance.now()`. */
  readonly nowMs?: () => number;
}

const rateLimitOptionNames: OptionNames<RateLimitOptions> = { name: required, callsPerSecond: required, nowMs: true };

/** A rate limit with a separate token bucket for each key. */
export interface RateLimit {
  /** Counts a call. @throws ConnectError `ResourceExhausted` with `Retry-After` and `RateLimit` if a bucket is empty */
  take(key: string): void;
}

/** Maximum keys in memory (10 MiB). Evicting the least recently used key has no effect if its bucket is full again. */
const maxRateLimitKeys = 100_000;

/** Number of keys that are searched together for eviction. */
const searchedKeys = 1_000;

const secondMs = 1000;

/**
 * Creates a rate limit with a token bucket for each key. A bucket holds one second's calls and refills continuously. A
 * bucket is stored as the time when it will be full again (the generic cell rate algorithm in ITU-T I.371).
 *
 * @throws TypeError for unknown options; RangeError for a rate that is not positive
 */
export function createRateLimit(options: RateLimitOptions): RateLimit {
  refuseUnknownOptions(options, rateLimitOptionNames, "createRateLimit");
  const { name, callsPerSecond, nowMs = () => performance.now() } = options;
  if (!(callsPerSecond > 0))
    throw new RangeError(`callsPerSecond of the ${name} limit must be positive, got ${callsPerSecond}`);
  const intervalMs = secondMs / callsPerSecond;
  const burstMs = Math.max(0, secondMs - intervalMs);
  // The keys are ordered by last use, so that the first key is evicted next.
  const fullAtMs = new Map<string, number>();
  const evictOldest = prepareEviction(fullAtMs);
  return {
    take(key) {
      const now = nowMs();
      const full = Math.max(now, fullAtMs.get(key) ?? 0);
      const waitMs = full - now - burstMs;
      // Rounding errors accumulate over many intervals and must not cause a refusal.
      if (waitMs > roundingMs) throw rateExceededError(name, callsPerSecond, waitMs);
      fullAtMs.delete(key);
      fullAtMs.set(key, full + intervalMs);
      if (fullAtMs.size > maxRateLimitKeys) evictOldest();
    },
  };
}

const roundingMs = 1e-6;

/**
 * Returns a function that evicts the first key. The function searches several keys at a time, because a new iterator
 * first skips all entries that were deleted from the map.
 */
function prepareEviction(fullAtMs: Map<string, number>): () => void {
  /** The found entries, the oldest last. Each use of a key changes its value, so a changed entry was used again. */
  const found: (readonly [key: string, fullAtMs: number])[] = [];
  const search = (): void => {
    for (const entry of fullAtMs) if (found.push(entry) === searchedKeys) break;
    found.reverse();
  };
  return () => {
    for (;;) {
      if (found.length === 0) search();
      const [key, foundAtMs] = found.pop() ?? [];
      if (key !== undefined && Object.is(fullAtMs.get(key), foundAtMs)) return void fullAtMs.delete(key);
    }
  };
}

/** Returns `ResourceExhausted` with the fields in draft-ietf-httpapi-ratelimit-headers-10. */
function rateExceededError(name: string, callsPerSecond: number, waitMs: number): ConnectError {
  const waitS = String(Math.max(1, Math.ceil(waitMs / secondMs)));
  const quota = Math.max(1, Math.trunc(callsPerSecond));
  const windowS = Math.max(1, Math.round(1 / callsPerSecond));
  const message = `too many calls: the ${name} limit is ${callsPerSecond} per second`;
  const errorCode: AuthErrorCode = "ERR_RATE_LIMITED";
  const header = {
    "retry-after": waitS,
    "ratelimit-policy": `"${name}";q=${quota};w=${windowS}`,
    ratelimit: `"${name}";r=0;t=${waitS}`,
  };
  return Object.assign(new ConnectError(message, Code.ResourceExhausted, header), { errorCode });
}

/** Options for {@link limitRates}. */
export interface CallRates {
  /** Maximum calls per second by each principal from all addresses, also in a burst. Unlimited by default. */
  readonly perPrincipal?: number | undefined;
  /** Maximum calls per second from each IPv4 address or IPv6 /64, also in a burst. Unlimited by default. */
  readonly perAddress?: number | undefined;
}

const callRatesNames: OptionNames<CallRates> = { perPrincipal: true, perAddress: true };

/**
 * Returns an `admit` that also limits the call rate of each address, before the credential is checked, and of each
 * principal. Without limits, returns `admit` itself. A rate below 1 allows one call in several seconds. Health checks
 * are not limited.
 *
 * @throws as {@link createRateLimit} does
 */
export function limitRates(admit: Admit, rates: CallRates): Admit {
  refuseUnknownOptions(rates, callRatesNames, "limitRates");
  const addressLimit = limitOf("address", rates.perAddress);
  const principalLimit = limitOf("principal", rates.perPrincipal);
  if (addressLimit === undefined && principalLimit === undefined) return admit;
  const limited: Admit = (request) => {
    if (request.procedure?.startsWith(`/${Health.typeName}/`) === true) return admit(request);
    // The address is checked first, so that a thousand wrong tokens do not cause a thousand verifications.
    addressLimit?.take(clientNetwork(request.peer.address));
    const admitted = admit(request);
    if (principalLimit === undefined) return admitted;
    if (admitted === undefined || typeof admitted === "function") {
      takeForPrincipal(principalLimit, request);
      return admitted;
    }
    return admitted.then((check) => {
      takeForPrincipal(principalLimit, request);
      return check;
    });
  };
  return Object.assign(limited, { requireChecked: admit.requireChecked });
}

function limitOf(name: string, callsPerSecond: number | undefined): RateLimit | undefined {
  return callsPerSecond === undefined ? undefined : createRateLimit({ name, callsPerSecond });
}

function takeForPrincipal(limit: RateLimit, { contextValues }: AdmitRequest): void {
  const principal = contextValues.get(principalKey);
  // Subjects are unique only within an issuer. Neither issuers nor subjects can contain the line break.
  if (principal !== undefined) limit.take(`${principal.issuer ?? ""}\n${principal.subject}`);
}
