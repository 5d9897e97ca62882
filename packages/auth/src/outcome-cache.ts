import type { TokenOutcome } from "./token-verifier.ts";

/** The outcome for a token, and how long it is valid. */
export interface TimedOutcome {
  readonly outcome: TokenOutcome;
  /** When the outcome expires, in milliseconds on the clock that its cache is asked by. */
  readonly untilMs: number;
}

/** Good tokens in one generation of the cache: the callers of a busy day, about 5 MB. */
const goodTokensMax = 10_000;

/** Bad tokens in one generation: enough for clients that repeat one, too few for a flood to matter. */
const badTokensMax = 1_000;

/**
 * Caches the outcomes for tokens by their digest; the tokens themselves are not kept.
 *
 * Bad tokens are kept apart from good ones, so that a flood of bad ones cannot evict the good. Concurrent checks of the
 * same token share one verification.
 */
export class OutcomeCache<K extends TimedOutcome> {
  readonly #good = new Generations<K>(goodTokensMax);
  readonly #bad = new Generations<K>(badTokensMax);
  readonly #asking = new Map<string, Promise<TokenOutcome>>();

  /** Returns the outcome for a token if it is still valid at `nowMs`. */
  get(digest: string, nowMs: number): K | undefined {
    const known = this.#good.get(digest) ?? this.#bad.get(digest);
    return known !== undefined && nowMs < known.untilMs ? known : undefined;
  }

  set(digest: string, known: K): void {
    const isGood = known.outcome.kind === "principal";
    (isGood ? this.#good : this.#bad).set(digest, known);
    (isGood ? this.#bad : this.#good).delete(digest);
  }

  /** Runs `ask`, unless it is already running for the same token; then waits for that result. */
  askOnce(digest: string, ask: () => Promise<TokenOutcome>): Promise<TokenOutcome> {
    const asked = this.#asking.get(digest);
    if (asked !== undefined) return asked;
    const asking = ask().finally(() => this.#asking.delete(digest));
    this.#asking.set(digest, asking);
    return asking;
  }
}

/**
 * A map of at most `2 * limit` values that drops those not used recently.
 *
 * A value that is used moves to the young generation; when that is full, it becomes the old one, and the previous old
 * one is dropped. So a hit is a single look-up, and a value beyond the limit costs no more than one before it: deleting
 * the first entry of a map again and again leaves holes that each search for the next one walks through.
 */
class Generations<V> {
  readonly #limit: number;
  #young = new Map<string, V>();
  #old = new Map<string, V>();

  constructor(limit: number) {
    this.#limit = limit;
  }

  get(key: string): V | undefined {
    const young = this.#young.get(key);
    if (young !== undefined) return young;
    const old = this.#old.get(key);
    if (old !== undefined) this.set(key, old);
    return old;
  }

  set(key: string, value: V): void {
    if (this.#young.size >= this.#limit && !this.#young.has(key)) {
      this.#old = this.#young;
      this.#young = new Map();
    }
    this.#young.set(key, value);
  }

  delete(key: string): void {
    this.#young.delete(key);
    this.#old.delete(key);
  }
}
