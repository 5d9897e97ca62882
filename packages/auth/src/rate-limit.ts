import { Code, ConnectError } from "@connectrpc/connect";
import { type OptionNames, refuseUnknownOptions, required } from "@plantstore/gateway/options";
import type { AuthErrorCode } from "./inputs/index.ts";

/** Options of {@link createRateLimit}. */
export interface RateLimitOptions {
  /** The name of the limit in messages and header fields: an sf-string, so printable ASCII without quotation marks. */
  readonly name: string;
  /** The calls per second of each key; as many may come at once. Below 1, it is one call in several seconds. */
  readonly callsPerSecond: number;
  /** The clock, in milliseconds; by default one that never jumps. */
  readonly nowMs?: () => number;
}

const rateLimitOptionNames: OptionNames<RateLimitOptions> = { name: required, callsPerSecond: required, nowMs: true };

/** A limit on how often each of many keys may do something. */
export interface RateLimit {
  /**
   * Takes one call from those that a key has left.
   *
   * @throws ConnectError `ResourceExhausted` with `Retry-After` and `RateLimit` fields, when nothing is left
   */
  take(key: string): void;
}

/**
 * The most keys that are remembered, which takes about 10 MiB. Beyond it, the key that has been quiet for longest is
 * forgotten, which changes nothing once its bucket has filled.
 */
const rateLimitKeysMax = 100_000;

const secondMs = 1000;

/**
 * Creates a rate limit: a token bucket for each key, which holds the calls of one second and fills evenly.
 *
 * Only the time at which a bucket will be full again is kept (the generic cell rate algorithm of ITU-T I.371), so
 * nothing runs between two calls.
 *
 * @throws TypeError for options that do not exist
 */
export function createRateLimit(options: RateLimitOptions): RateLimit {
  refuseUnknownOptions(options, rateLimitOptionNames, "createRateLimit");
  const { name, callsPerSecond, nowMs = () => performance.now() } = options;
  const intervalMs = secondMs / callsPerSecond;
  const emptyMs = Math.max(0, secondMs - intervalMs);
  // In the order of use, so that the first key is the one to forget.
  const fullAtMs = new Map<string, number>();
  return {
    take(key) {
      const now = nowMs();
      const full = Math.max(now, fullAtMs.get(key) ?? 0);
      const waitMs = full - now - emptyMs;
      // The rounding errors of many intervals are no reason to refuse a call.
      if (waitMs > roundingMs) throw exhausted(name, callsPerSecond, waitMs);
      fullAtMs.delete(key);
      fullAtMs.set(key, full + intervalMs);
      if (fullAtMs.size > rateLimitKeysMax) forgetOldest(fullAtMs);
    },
  };
}

const roundingMs = 1e-6;

function forgetOldest(keys: Map<string, unknown>): void {
  for (const key of keys.keys()) {
    keys.delete(key);
    return;
  }
}

/** Returns `ResourceExhausted` with the fields of draft-ietf-httpapi-ratelimit-headers-10: nothing for `t` seconds. */
function exhausted(name: string, callsPerSecond: number, waitMs: number): ConnectError {
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
