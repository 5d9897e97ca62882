import type { TokenOutcome } from "./token-verifier.ts";

/** The outcome for a token, and the times between which the outcome may be used. */
export interface ExpiringOutcome {
  readonly outcome: TokenOutcome;
  /** When the outcome expires, in milliseconds, by the same clock as `nowMs` in lookups. */
  readonly untilMs: number;
  /** When the outcome was determined. If the clock is set back, the outcome is not used before `fromMs`. */
  readonly fromMs?: number;
}

/** Maximum valid tokens per cache generation. 10,000 take about 5 MB, and suffice for a busy day's callers. */
const maxValidTokens = 10_000;

/** Maximum number of rejected tokens per cache generation. 1,000 suffice for clients that repeat a token. */
const maxRejectedTokens = 1_000;

/**
 * Caches the outcome for each token by the token's digest. The tokens themselves are not stored. Rejected tokens are
 * stored separately, so that they cannot evict valid ones. Concurrent calls for the same token share one verification.
 */
export class OutcomeCache<K extends ExpiringOutcome> {
  readonly #valid = new CacheGenerations<K>(maxValidTokens);
  readonly #rejected = new CacheGenerations<K>(maxRejectedTokens);
  readonly #pending = new Map<string, Promise<TokenOutcome>>();

  /** Returns the cached outcome for a token, or `undefined` if no outcome may be used at `nowMs`. */
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
 * A map with at most `2 * limit` values, which evicts values that were not used recently.
 *
 * A value that is used moves to the young generation. When the young generation is full, it becomes the old
 * generation, and the previous old generation is dropped. A cache hit usually costs one lookup. Evicting from a single
 * map would be slow, because finding the first key skips all deleted entries.
 */
class CacheGenerations<V> {
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
