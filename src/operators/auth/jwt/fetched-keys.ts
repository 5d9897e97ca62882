import type { AuthLog } from "../auth-log.ts";
import { parsed, type ParseResult } from "../parse-result.ts";
import { digestOf } from "../token-verifier.ts";
import type { IssuerKeys } from "./issuer-keys.ts";
import type { FetchKeyDocument } from "./key-document.ts";
import { type KeySet, noKeys, readKeySet, withdrawsAllKeys } from "./key-set.ts";
import type { JwtAlgorithm } from "./jwt-algorithm.ts";

/** Options of {@link openFetchedKeys}. */
export interface FetchedKeysOptions {
  readonly issuer: string;
  readonly algorithms: readonly JwtAlgorithm[];
  readonly fetchDocument: FetchKeyDocument;
  readonly log: AuthLog;
  readonly timing?: Partial<KeyTiming> | undefined;
}

/** When a key set is fetched; all times are in milliseconds. */
export interface KeyTiming {
  /** The time between a successful fetch and the next one. */
  readonly refreshMs: number;
  /** How long keys are used after the last successful fetch. */
  readonly usableMs: number;
  /** The least time between two fetches that are caused by tokens with an unknown key. */
  readonly coolDownMs: number;
  /** How long one fetch may take, discovery included. */
  readonly fetchMs: number;
  /** The wait before a failed fetch is repeated; doubled after every further failure, up to `backOffMaxMs`. */
  readonly backOffMs: number;
  readonly backOffMaxMs: number;
}

/**
 * The default times.
 *
 * 5 minutes: a withdrawn key is soon gone, and the provider gets 300 requests a day. 24 hours: outlasts the longest
 * outages of providers, and a stolen key does not stay valid forever. 10 seconds: keys are published before they are
 * used, and a client that sends unknown keys causes six fetches a minute at most. 5 seconds: a call that waits for an
 * unknown key should not outlast the patience of its client.
 */
export const defaultKeyTiming: KeyTiming = {
  refreshMs: 5 * 60_000,
  usableMs: 24 * 3_600_000,
  coolDownMs: 10_000,
  fetchMs: 5_000,
  backOffMs: 1_000,
  backOffMaxMs: 60_000,
};

/**
 * Opens the keys that an issuer publishes; resolves after the first fetch, even when it failed.
 *
 * Keys are fetched in the background, with one exception: a token with an unknown key causes a fetch, which all such
 * tokens wait for together. While the provider is down, the last keys stay in use for a day.
 */
export async function openFetchedKeys(options: FetchedKeysOptions): Promise<IssuerKeys> {
  const keys = new FetchedKeys(options);
  await keys.reload();
  return keys;
}

class FetchedKeys implements IssuerKeys {
  readonly #options: FetchedKeysOptions;
  readonly #timing: KeyTiming;
  readonly #closed = new AbortController();
  #set: KeySet | undefined;
  #documentDigest = "";
  #fetchedAtMs = Number.NEGATIVE_INFINITY;
  #askedAtMs = Number.NEGATIVE_INFINITY;
  #nextAtMs = 0;
  #failures = 0;
  #lastProblem = "";
  #fetching: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: FetchedKeysOptions) {
    this.#options = options;
    this.#timing = { ...defaultKeyTiming, ...options.timing };
  }

  current(): KeySet | undefined {
    return performance.now() - this.#fetchedAtMs < this.#timing.usableMs ? this.#set : undefined;
  }

  async renew(): Promise<void> {
    // After a failure the next fetch is scheduled: requests must not undermine the back-off.
    const isDue = this.#failures === 0 && performance.now() - this.#askedAtMs >= this.#timing.coolDownMs;
    if (this.#fetching !== undefined || isDue) await this.reload();
  }

  get fetchedAtMs(): number | undefined {
    return this.#fetchedAtMs === Number.NEGATIVE_INFINITY ? undefined : this.#fetchedAtMs;
  }

  get retryAfterS(): number | undefined {
    if (this.#failures === 0) return undefined;
    return Math.max(1, Math.ceil((this.#nextAtMs - performance.now()) / 1000));
  }

  get problem(): string | undefined {
    const { issuer } = this.#options;
    const keys = this.current();
    if (keys === undefined) return `no usable keys of ${issuer}: ${this.#lastProblem}`;
    return keys.size === 0 ? `${issuer} has withdrawn all its keys` : undefined;
  }

  reload(): Promise<void> {
    this.#fetching ??= this.#fetchOnce().finally(() => {
      this.#fetching = undefined;
      this.#schedule();
    });
    return this.#fetching;
  }

  close(): void {
    this.#closed.abort();
    clearTimeout(this.#timer);
  }

  async #fetchOnce(): Promise<void> {
    clearTimeout(this.#timer);
    this.#askedAtMs = performance.now();
    const signal = AbortSignal.any([AbortSignal.timeout(this.#timing.fetchMs), this.#closed.signal]);
    const document = await this.#options.fetchDocument(signal);
    const taken = document.kind === "value" ? await this.#take(document.value) : document;
    if (taken.kind === "problems") this.#fail(taken.problems.join("; "));
  }

  async #take(text: string): Promise<ParseResult<void>> {
    const digest = digestOf(text);
    // An unchanged document keeps the same set, and with it every cached outcome.
    if (digest !== this.#documentDigest) {
      const set = withdrawsAllKeys(text) ? parsed(noKeys) : await readKeySet(text, this.#options.algorithms);
      if (set.kind === "problems") return set;
      this.#set = set.value;
      this.#documentDigest = digest;
      this.#options.log.info({ issuer: this.#options.issuer, keys: set.value.size }, "keys changed");
    }
    if (this.#failures > 0) this.#options.log.info({ issuer: this.#options.issuer }, "keys can be fetched again");
    this.#failures = 0;
    this.#fetchedAtMs = performance.now();
    return { kind: "value", value: undefined };
  }

  #fail(problem: string): void {
    if (this.#closed.signal.aborted) return;
    this.#failures += 1;
    this.#lastProblem = problem;
    const { issuer, log } = this.#options;
    log.warn(
      { issuer, problem, failures: this.#failures, keysInUse: this.current()?.size ?? 0 },
      "keys cannot be fetched",
    );
  }

  #schedule(): void {
    if (this.#closed.signal.aborted) return;
    const { refreshMs, backOffMs, backOffMaxMs } = this.#timing;
    const delayMs = this.#failures === 0 ? refreshMs : Math.min(backOffMaxMs, backOffMs * 2 ** (this.#failures - 1));
    // Spreads the fetches of replicas that started, or failed, at the same time.
    const spreadMs = delayMs * (0.75 + Math.random() / 4);
    this.#nextAtMs = performance.now() + spreadMs;
    this.#timer = setTimeout(() => void this.reload(), spreadMs);
    this.#timer.unref();
  }
}
