import { BoundedCache } from "./bounded-cache.ts";
import type { TokenOutcome } from "./token-verifier.ts";

/** What a verifier found out about a token, and how long that holds. */
export interface KnownOutcome {
  readonly outcome: TokenOutcome;
  /** Milliseconds since the epoch from which the outcome is no longer known. */
  readonly untilMs: number;
}

/** Good tokens of one generation of the cache: the callers of a busy day, some 5 MB. */
const goodTokensMax = 10_000;

/** Bad tokens of one generation: enough for a client that repeats one, too few for a flood to matter. */
const badTokensMax = 1_000;

/**
 * Remembers what was found out about tokens, by their digest: no token is kept.
 *
 * Bad tokens are remembered apart from good ones, so that a flood of the one does not drive out the
 * other. Questions about one token that come while it is being verified share the answer.
 */
export class KnownOutcomes<K extends KnownOutcome> {
  readonly #good = new BoundedCache<K>(goodTokensMax);
  readonly #bad = new BoundedCache<K>(badTokensMax);
  readonly #asking = new Map<string, Promise<TokenOutcome>>();

  /** Returns what is known of a token at a time, in milliseconds since the epoch. */
  get(digest: string, nowMs: number): K | undefined {
    const known = this.#good.get(digest) ?? this.#bad.get(digest);
    if (known === undefined || nowMs < known.untilMs) return known;
    this.#good.delete(digest);
    this.#bad.delete(digest);
    return undefined;
  }

  /** Remembers what was found out. */
  set(digest: string, known: K): void {
    const isGood = known.outcome.kind === "principal";
    (isGood ? this.#good : this.#bad).set(digest, known);
    (isGood ? this.#bad : this.#good).delete(digest);
  }

  /** Runs `ask`, unless it is running for the same token already; then that answer is waited for. */
  askOnce(digest: string, ask: () => Promise<TokenOutcome>): Promise<TokenOutcome> {
    const asked = this.#asking.get(digest);
    if (asked !== undefined) return asked;
    const asking = ask().finally(() => this.#asking.delete(digest));
    this.#asking.set(digest, asking);
    return asking;
  }
}
