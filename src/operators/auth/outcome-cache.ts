import type { TokenOutcome } from "./token-verifier.ts";

/** The outcome for a token, and how long it is valid. */
export interface TimedOutcome {
  readonly outcome: TokenOutcome;
  /** Milliseconds since the epoch at which the outcome expires. */
  readonly untilMs: number;
}

/** The most good tokens that are known: the callers of a busy day, about 10 MB. */
const goodTokensMax = 20_000;

/** The most bad tokens: enough for clients that repeat one, too few for a flood to matter. */
const badTokensMax = 2_000;

/**
 * Caches the outcomes for tokens by their digest; the tokens themselves are not kept. Beyond the limit, the one that
 * was verified first is forgotten, and verified anew when it comes again: so a hit is a single look-up.
 *
 * Bad tokens are kept apart from good ones, so that a flood of bad ones cannot evict the good. Concurrent checks of the
 * same token share one verification.
 */
export class OutcomeCache<K extends TimedOutcome> {
  readonly #good = new Map<string, K>();
  readonly #bad = new Map<string, K>();
  readonly #asking = new Map<string, Promise<TokenOutcome>>();

  /** Returns the outcome for a token if it is still valid at `nowMs`, in milliseconds since the epoch. */
  get(digest: string, nowMs: number): K | undefined {
    const known = this.#good.get(digest) ?? this.#bad.get(digest);
    return known !== undefined && nowMs < known.untilMs ? known : undefined;
  }

  set(digest: string, known: K): void {
    this.#good.delete(digest);
    this.#bad.delete(digest);
    if (known.outcome.kind === "principal") add(this.#good, digest, known, goodTokensMax);
    else add(this.#bad, digest, known, badTokensMax);
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

function add<K>(to: Map<string, K>, digest: string, known: K, most: number): void {
  const [oldest] = to.keys();
  if (oldest !== undefined && to.size >= most) to.delete(oldest);
  to.set(digest, known);
}
