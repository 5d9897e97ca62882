import type { JWTVerifyGetKey } from "jose";
import type { FileReload } from "../inputs/index.ts";

/** The keys of one issuer, kept up to date in the background. */
export interface IssuerKeys {
  /**
   * Finds the key of a signature for jose. May wait for a newer set if the token names an unknown key; concurrent
   * calls share one fetch.
   *
   * Rejects with `JWKSNoMatchingKey`, `JWKSMultipleMatchingKeys` or {@link KeysUnavailable}; with `JOSENotSupported`
   * for an `alg` that is not asymmetric. Every key of the set can be imported.
   */
  readonly find: JWTVerifyGetKey;

  /** The identity of the set in use: another object after a change, `undefined` while there is none. */
  readonly current: object | undefined;

  /**
   * When the set was last fetched, in milliseconds of `performance.now()`; `undefined` if it never was, or is in a
   * file.
   */
  readonly fetchedAtMs: number | undefined;

  /** Seconds until the next fetch when the last one failed; `undefined` when the set is current. */
  readonly retryAfterS: number | undefined;

  /** Why no token can be verified, for an operator; `undefined` while tokens can be verified. */
  readonly problem: string | undefined;

  /** The outcome of the last reload, for keys in a file. */
  readonly fileReload?: FileReload;

  /** Reads the keys again immediately. */
  reload(): Promise<void>;

  close(): void;
}

/** Thrown when keys are needed and cannot be fetched; `IssuerKeys.problem` and the log contain the reason. */
export class KeysUnavailable extends Error {}
