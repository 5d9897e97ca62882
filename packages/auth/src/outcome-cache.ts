import type { TokenOutcome } from "./token-verifier.ts";

/** The outcome for a token, and how long it may be cached. */
export interface ExpiringOutcome {
  readonly outcome: TokenOutcome;
  /** When the outcome expires, in milliseconds by the clock that the cache's caller uses. */
  readonly untilMs: number;
  /**
   * When the outcome was determined, by the same clock. Set if that clock can be set back. The outcome is not used
   * before this time.
   */
  readonly fromMs?: number;
}

/** Maximum valid tokens in one cache generation: enough for all callers on a busy day, about 5 MB. */
const validTokensMax = 10_000;

/** Maximum rejected tokens in one generation: enough for clients that repeat a token, and little memory in a flood. */
const rejectedTokensMax = 1_000;

/**
 * Caches the outcomes for tokens by their digest. The tokens themselves are not stored.
 *
 * Rejected tokens are stored separately, so that many of them cannot evict valid ones. Concurrent calls for the same
 * token share one verification.
 */
export class OutcomeCache<K extends ExpiringOutcome> {
  readonly #valid = new Generations<K>(validTokensMax);
  readonly #rejected = new Generations<K>(rejectedTokensMax);
  readonly #pending = new Map<string, Promise<TokenOutcome>>();

  /** Returns the outcome for a token if it is still valid at `nowMs`. */
  get(digest: string, nowMs: number): K | undefined {
    const cached = this.#valid.get(digest) ?? this.#rejected.get(digest);
    if (cached === undefined || nowMs >= cached.untilMs) return undefined;
    return cached.fromMs !== undefined && nowMs < cached.fromMs ? undefined : cached;
  }

  set(digest: string, known: K): void {
    const isValid = known.outcome.kind === "principal";
    (isValid ? this.#valid : this.#rejected).set(digest, known);
    (isValid ? this.#rejected : this.#valid).delete(digest);
  }

  /** Calls `verify`. If a call for the same token is running, returns its promise instead. */
  verifyOnce(digest: string, verify: () => Promise<TokenOutcome>): Promise<TokenOutcome> {
    const running = this.#pending.get(digest);
    if (running !== undefined) return running;
    const started = verify().finally(() => this.#pending.delete(digest));
    this.#pending.set(digest, started);
    return started;
  }
}

/**
 * A map with at most `2 * limit` values, which evicts those not used recently.
 *
 * A value that is used moves to the young generation. When that is full, it becomes the old generation, and the
 * previous old generation is dropped. A hit is usually one lookup, and eviction has no cost per value. Deleting a
 * single map's first entry each time would be slow, because deleted entries leave holes, which each search for the next
 * entry has to skip.
 */
class Generations<V> {
  readonly #limit: number;
  #youngGeneration = new Map<string, V>();
  #oldGeneration = new Map<string, V>();

  constructor(limit: number) {
    this.#limit = limit;
  }

  get(key: string): V | undefined {
    const youngValue = this.#youngGeneration.get(key);
    if (youngValue !== undefined) return youngValue;
    const oldValue = this.#oldGeneration.get(key);
    if (oldValue !== undefined) this.set(key, oldValue);
    return oldValue;
  }

  set(key: string, value: V): void {
    if (this.#youngGeneration.size >= this.#limit && !this.#youngGeneration.has(key)) {
      this.#oldGeneration = this.#youngGeneration;
      this.#youngGeneration = new Map();
    }
    this.#youngGeneration.set(key, value);
  }

  delete(key: string): void {
    this.#youngGeneration.delete(key);
    this.#oldGeneration.delete(key);
  }
}
