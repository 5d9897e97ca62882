import type { JWTVerifyGetKey } from "jose";
import type { FileReload } from "../inputs/index.ts";

/** One issuer's keys, kept up to date in the background. */
export interface IssuerKeys {
  /**
   * Finds a signature's key for jose. May wait for a newer set if the key is unknown. Concurrent calls share one fetch.
   *
   * Rejects with `JWKSNoMatchingKey`, `JWKSMultipleMatchingKeys`, {@link KeysUnavailableError}, or `JOSENotSupported`
   * if `alg` is not asymmetric. Never rejects with a key's import error.
   */
  readonly find: JWTVerifyGetKey;

  /** The key set in use, if any. Each change creates a new object, so that key sets can be compared by identity. */
  readonly current: object | undefined;

  /** When the key set was last fetched, in `performance.now()` milliseconds. `undefined` if never, or for a file. */
  readonly fetchedAtMs: number | undefined;

  /** Seconds until the next fetch if the last fetch failed, or `undefined` if the last fetch succeeded. */
  readonly retryAfterS: number | undefined;

  /** The reason why no token can be verified, for an operator. `undefined` if tokens can be verified. */
  readonly problem: string | undefined;

  /** The last reload's outcome, if the keys are in a file. */
  readonly fileReload?: FileReload;

  /** Reads the keys again immediately. */
  reload(): Promise<void>;

  close(): void;
}

/** Thrown when the keys are needed but cannot be fetched. The reason is logged, and is in `IssuerKeys.problem`. */
export class KeysUnavailableError extends Error {
  /** Seconds until the keys may be fetched for a token with an unknown key, if that is why. */
  readonly retryAfterS: number | undefined;

  constructor(retryAfterS?: number) {
    super("the keys cannot be fetched now");
    this.retryAfterS = retryAfterS;
  }
}
