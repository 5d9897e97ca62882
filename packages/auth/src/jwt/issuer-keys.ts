import type { JWTVerifyGetKey } from "jose";
import type { FileReload } from "../inputs/index.ts";

/** The keys of one issuer, kept up to date in the background. */
export interface IssuerKeys {
  /**
   * Finds the key of a signature for jose, and may wait for a newer set where the token names an unknown key; any
   * number of such tokens causes one fetch.
   *
   * Rejects with `JWKSNoMatchingKey`, with `JWKSMultipleMatchingKeys`, and with {@link KeysUnavailable}; with
   * `JOSENotSupported` for an `alg` that is not asymmetric. No key of the set is broken: each was imported before.
   */
  readonly find: JWTVerifyGetKey;

  /** The set in use, by its identity: another object once it changed, `undefined` while there is none. */
  readonly current: object | undefined;

  /**
   * When the set was last known to be current, in milliseconds on the clock of `performance.now()`; `undefined` for a
   * set that is not fetched, or has not been yet.
   */
  readonly fetchedAtMs: number | undefined;

  /** Seconds until it is worth trying again, when the set may be out of date; `undefined` when it is current. */
  readonly retryAfterS: number | undefined;

  /** Why no token can be verified, for an operator; `undefined` while tokens can be. */
  readonly problem: string | undefined;

  /** How the last reload went, of keys in a file. */
  readonly fileReload?: FileReload;

  /** Reads the keys again at once. */
  reload(): Promise<void>;

  close(): void;
}

/** Newer keys are needed and cannot be had right now; `IssuerKeys.problem` and the log say why. */
export class KeysUnavailable extends Error {}
