import type { KeySet } from "./key-set.ts";

/** The keys of one issuer, kept up to date in the background. */
export interface IssuerKeys {
  /** Returns the set to verify with; `undefined` when there has never been one, or the last one is too old. */
  current(): KeySet | undefined;

  /**
   * Tries to get a newer set, for a token that names an unknown key; resolves when that is done, successful or not.
   *
   * Returns at once when it is too early to ask again: any number of such tokens causes one fetch.
   */
  renew(): Promise<void>;

  /**
   * When the set was last known to be current, in milliseconds on the clock of `performance.now()`; `undefined` for a
   * set that is not fetched, or has not been yet.
   */
  readonly fetchedAtMs: number | undefined;

  /** Seconds until it is worth trying again, when the set may be out of date; `undefined` when it is current. */
  readonly retryAfterS: number | undefined;

  /** Why no token can be verified, for an operator; `undefined` while tokens can be. */
  readonly problem: string | undefined;

  /** Reads the keys again at once. */
  reload(): Promise<void>;

  close(): void;
}
