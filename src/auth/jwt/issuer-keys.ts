import type { KeySet } from "./key-set.ts";

/** The keys of one issuer, kept fresh without the requests that need them. */
export interface IssuerKeys {
  /** The set to verify with now; `undefined` when there never was one, or none that is young enough. */
  current(): KeySet | undefined;

  /**
   * Asks for a newer set, for a token that names an unknown key; resolves when asking is over, also when it was in vain.
   *
   * Returns at once when asking is not due: any number of such tokens makes one fetch.
   */
  renew(): Promise<void>;

  /** Seconds until it is worth trying again, when the set may be older than what the issuer has; `undefined` when it is up to date. */
  readonly behindS: number | undefined;

  /** Why nothing can be verified, for an operator; `undefined` while something can. */
  readonly problem: string | undefined;

  /** Reads the keys anew, whatever is due. */
  reload(): Promise<void>;

  close(): void;
}
