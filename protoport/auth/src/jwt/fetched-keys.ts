import {
  createRemoteJWKSet,
  customFetch,
  errors,
  type JSONWebKeySet,
  jwksCache,
  type JWTVerifyGetKey,
  type RemoteJWKSet,
} from "jose";

import { type OperatorLog, parsed, type ParseResult, type AuthErrorCode } from "../inputs/index.ts";
import { digestOf } from "../token-verifier.ts";
import { type IssuerKeys, KeysUnavailableError } from "./issuer-keys.ts";
import { readKeySet } from "./key-set.ts";
import type { JwtAlgorithm } from "./jwt-algorithm.ts";

/** Fetches a JWK Set as a string. Never rejects. */
export type FetchKeyDocument = (signal: AbortSignal) => Promise<ParseResult<string>>;

/** Options for {@link openFetchedKeys}. */
interface FetchedKeysOptions {
  readonly issuer: string;
  /** The URL that `fetchDocument` requests: the URL of the keys or of the issuer's metadata. */
  readonly url: URL;
  readonly algorithms: readonly JwtAlgorithm[];
  readonly fetchDocument: FetchKeyDocument;
  readonly log: OperatorLog;
  readonly timing?: Partial<KeyTiming> | undefined;
}

/** The times at which a key set is fetched, in milliseconds. */
export interface KeyTiming {
  /** The interval between a successful fetch and the next fetch. */
  readonly refreshMs: number;
  /** How long keys are used after the last successful fetch. jose measures this time with the wall clock. */
  readonly usableMs: number;
  /** The minimum time between a successful fetch and a fetch for a token with an unknown key. */
  readonly unknownKeyGapMs: number;
  /** The minimum time between two fetches for tokens with the same unknown key. */
  readonly coolDownMs: number;
  /** Timeout for one fetch, including discovery. */
  readonly fetchMs: number;
  /** The back-off after a failed fetch, which doubles after each further failure, up to `maxBackOffMs`. */
  readonly backOffMs: number;
  readonly maxBackOffMs: number;
}

/**
 * The default times.
 *
 * With 5 minutes for `refreshMs`, a withdrawn key is removed soon, and the provider gets 300 requests a day. With 24
 * hours for `usableMs`, keys outlast a provider outage, but a stolen key does not stay valid forever. Providers publish
 * keys before they sign tokens with them, so a set that is a second old (`unknownKeyGapMs`) has them. With 20 seconds
 * for `coolDownMs`, a client that repeats an unknown key leaves two of three fetches to a new key. `fetchMs` is 5
 * seconds, because a call that waits for an unknown key should not wait longer than its client does.
 */
export const defaultKeyTiming: KeyTiming = {
  refreshMs: 5 * 60_000,
  usableMs: 24 * 3_600_000,
  unknownKeyGapMs: 1_000,
  coolDownMs: 20_000,
  fetchMs: 5_000,
  backOffMs: 1_000,
  maxBackOffMs: 60_000,
};

/**
 * The fetches for unknown keys: three together, then one in 20 seconds. Someone who sends unknown keys causes at most six
 * a minute, and delays a new key by at most 20 seconds.
 */
const unknownKeyFetches = { together: 3, refillMs: 20_000 };

/**
 * Fetches an issuer's keys, and keeps them up to date. Resolves after the first fetch, even if that failed. jose's
 * remote key set stores the keys. This module adds the refresh, the back-off, and fetches for unknown keys.
 */
export async function openFetchedKeys(options: FetchedKeysOptions): Promise<IssuerKeys> {
  const keys = new FetchedKeys(options);
  await keys.reload();
  return keys;
}

class FetchedKeys implements IssuerKeys {
  readonly #remote: RemoteJWKSet;
  readonly #options: FetchedKeysOptions;
  readonly #timing: KeyTiming;
  readonly #closed = new AbortController();
  /** The object in which jose stores the key set in use. */
  readonly #cache: { jwks?: JSONWebKeySet } & Record<string, never> = {};
  #document: { readonly digest: string; readonly keySet: JSONWebKeySet } | undefined;
  #fetchedAtMs: number | undefined;
  #nextAtMs = 0;
  #failures = 0;
  #lastProblem = "";
  #timer: NodeJS.Timeout | undefined;
  /** When a fetch for each unknown key began, in `performance.now()` milliseconds. */
  readonly #unknown = new Map<string, number>();
  /** The time by which all fetches for unknown keys are available again. */
  #refilledAtMs = 0;

  constructor(options: FetchedKeysOptions) {
    this.#options = options;
    this.#timing = { ...defaultKeyTiming, ...options.timing };
    this.#remote = createRemoteJWKSet(options.url, {
      [customFetch]: (_url, { signal }) => this.#fetch(signal),
      [jwksCache]: this.#cache,
      cacheMaxAge: this.#timing.usableMs,
      cooldownDuration: Infinity,
      timeoutDuration: this.#timing.fetchMs,
    });
  }

  readonly find: JWTVerifyGetKey = async (header, jws) => {
    try {
      return await this.#remote(header, jws);
    } catch (error) {
      if (!(error instanceof errors.JWKSNoMatchingKey) || !(await this.#fetchUnknown(header?.kid ?? ""))) throw error;
      return this.#remote(header, jws);
    }
  };

  get current(): JSONWebKeySet | undefined {
    return this.#remote.fresh ? this.#cache.jwks : undefined;
  }

  get fetchedAtMs(): number | undefined {
    return this.#fetchedAtMs;
  }

  get retryAfterS(): number | undefined {
    if (this.#failures === 0) return undefined;
    return Math.max(1, Math.ceil((this.#nextAtMs - performance.now()) / 1000));
  }

  get problem(): string | undefined {
    const { issuer } = this.#options;
    if (this.current === undefined) return `no usable keys for ${issuer}: ${this.#lastProblem}`;
    return this.current.keys.length === 0 ? `${issuer} has withdrawn all its keys` : undefined;
  }

  async reload(): Promise<void> {
    this.#nextAtMs = 0;
    // The rejection is ignored, because `#fail` has already logged the problem.
    await this.#remote.reload().catch(() => undefined);
  }

  /**
   * Fetches the keys for a token with an unknown key. Resolves to whether newer keys are in use.
   *
   * @throws KeysUnavailableError if no fetch is allowed now, or if it fails
   */
  async #fetchUnknown(kid: string): Promise<boolean> {
    const nowMs = performance.now();
    // A fetch that runs is shared. After a failure, the back-off is the limit.
    if (!this.#remote.reloading && this.#failures === 0) {
      const { unknownKeyGapMs, coolDownMs } = this.#timing;
      if (nowMs - (this.#fetchedAtMs ?? -Infinity) < unknownKeyGapMs) return false;
      if (nowMs - (this.#unknown.get(kid) ?? -Infinity) < coolDownMs) return false;
      const { together, refillMs } = unknownKeyFetches;
      const waitMs = this.#refilledAtMs - nowMs - (together - 1) * refillMs;
      if (waitMs > 0) throw new KeysUnavailableError(Math.ceil(waitMs / 1000));
      this.#refilledAtMs = Math.max(nowMs, this.#refilledAtMs) + refillMs;
      for (const [other, atMs] of this.#unknown) if (nowMs - atMs >= coolDownMs) this.#unknown.delete(other);
      this.#unknown.set(kid, nowMs);
    }
    await this.#remote.reload();
    return true;
  }

  close(): void {
    this.#closed.abort();
    clearTimeout(this.#timer);
  }

  async #fetch(timeout: AbortSignal): Promise<Response> {
    // jose also fetches for tokens with an unknown key. A fetch for an unknown key must not bypass the back-off.
    if (this.#failures > 0 && performance.now() < this.#nextAtMs) throw new KeysUnavailableError();
    clearTimeout(this.#timer);
    const text = await this.#options.fetchDocument(AbortSignal.any([timeout, this.#closed.signal]));
    const keySet = text.kind === "value" ? await this.#read(text.value) : text;
    if (this.#closed.signal.aborted) throw new KeysUnavailableError();
    if (keySet.kind === "value") this.#succeed();
    else this.#fail(keySet.problems.join("; "));
    this.#schedule();
    if (keySet.kind === "problems") throw new KeysUnavailableError();
    return Object.assign(new Response(), { json: () => Promise.resolve(keySet.value) });
  }

  /** Parses a key set. An unchanged document returns the same object, so that cached outcomes stay valid. */
  async #read(text: string): Promise<ParseResult<JSONWebKeySet>> {
    const digest = digestOf(text);
    if (digest === this.#document?.digest) return parsed(this.#document.keySet);
    const { issuer, algorithms, log } = this.#options;
    const keySet = await readKeySet(text, algorithms);
    if (keySet.kind === "problems") return keySet;
    this.#document = { digest, keySet: keySet.value };
    log.info({ issuer, keys: keySet.value.keys.length }, "keys changed");
    return keySet;
  }

  #succeed(): void {
    if (this.#failures > 0) this.#options.log.info({ issuer: this.#options.issuer }, "keys fetched again");
    this.#failures = 0;
    this.#fetchedAtMs = performance.now();
  }

  #fail(problem: string): void {
    this.#failures += 1;
    this.#lastProblem = problem;
    const { issuer, log } = this.#options;
    const keysInUse = this.current?.keys.length ?? 0;
    const errorCode: AuthErrorCode = "ERR_KEYS_UNAVAILABLE";
    log.warn({ errorCode, issuer, problem, failures: this.#failures, keysInUse }, "cannot fetch keys");
  }

  #schedule(): void {
    const { refreshMs, backOffMs, maxBackOffMs } = this.#timing;
    const delayMs = this.#failures === 0 ? refreshMs : Math.min(maxBackOffMs, backOffMs * 2 ** (this.#failures - 1));
    // Jitter spreads fetches by replicas that started or failed at the same time.
    const jitteredMs = delayMs * (0.75 + Math.random() / 4);
    this.#nextAtMs = performance.now() + jitteredMs;
    this.#timer = setTimeout(() => void this.reload(), jitteredMs);
    this.#timer.unref();
  }
}
