import { hash } from "node:crypto";
import { type ContextKey, createContextKey } from "@connectrpc/connect";
import type { FileReload } from "./inputs/index.ts";

/** The caller with a valid token. */
export interface Principal {
  readonly kind: "principal";
  /** The caller's id, which is the JWT's `sub` or the static token's name. */
  readonly subject: string;
  /** The issuer of the subject, which is the JWT's `iss`, or `undefined` for static tokens. */
  readonly issuer: string | undefined;
  /** The token's scopes, or `"all"` if the token is not limited to scopes. */
  readonly scopes: ReadonlySet<string> | "all";
}

/**
 * The reason why a token is not accepted.
 *
 * - `unknown`: the token is not one of this verifier's tokens. Another verifier may know the token.
 * - `invalid`: the token is recognised and rejected, for example because it was revoked or has a wrong signature.
 * - `expired`: the token was valid before.
 * - `unavailable`: the token cannot be verified right now. The client should keep the token and retry.
 *
 * `reason` is for the operator's log. The reason never contains the token, and is never sent to the client.
 */
export type TokenProblem =
  | { readonly kind: "unknown" | "invalid" | "expired"; readonly reason: string }
  | { readonly kind: "unavailable"; readonly reason: string; readonly retryAfterS: number };

/** The result of verifying a token. */
export type TokenOutcome = Principal | TokenProblem;

/** A token as the client sent it, with a digest that may be stored. */
export interface PresentedToken {
  /** The well-formed token, before verification. A connection's last token is cached until the connection closes. */
  readonly text: string;
  /** The token's SHA-256 in lower-case hex, computed once for all verifiers. */
  readonly digest: string;
}

/** Returns a token's SHA-256 in lower-case hex. */
export function digestOf(text: string): string {
  // bench/auth: hashing takes 0.3 µs for 43 characters and 0.8 µs for 800. A Buffer digest takes 0.5 µs more.
  return hash("sha256", text, "hex");
}

/** When an issuer's keys were fetched successfully. */
export interface KeysFetched {
  readonly issuer: string;
  readonly atMs: number;
}

/**
 * Decides whether a token is valid. `verify` returns a promise only if it must wait, so that most calls create none. A
 * rejected token is an outcome. A thrown error is a bug.
 */
export interface TokenVerifier {
  verify(token: PresentedToken): TokenOutcome | Promise<TokenOutcome>;

  /** The reason why tokens cannot be verified right now, for an operator. `undefined` if tokens can be verified. */
  readonly problem?: string | undefined;

  /** When each issuer's keys were last fetched, if ever, in `performance.now()` milliseconds. */
  readonly keysFetched?: readonly KeysFetched[];

  /** The last reload of each watched file. */
  readonly fileReloads?: readonly FileReload[];

  /** Reloads files and keys immediately. Never rejects. An unreadable source is logged, and its content is kept. */
  reload?(): Promise<void>;

  /** Stops timers and closes connections. */
  close?(): void;
}

/**
 * Creates a verifier that tries the given verifiers in order, the cheapest first, until one recognises the token.
 * `unavailable` also ends the search, because a token must not be reported as unknown if an earlier verifier may
 * recognise it.
 */
export function createVerifierChain(verifiers: readonly TokenVerifier[]): TokenVerifier {
  const [only] = verifiers;
  if (only !== undefined && verifiers.length === 1) return only;

  function verifyFrom(index: number, token: PresentedToken): TokenOutcome | Promise<TokenOutcome> {
    const verifier = verifiers[index];
    if (verifier === undefined) return { kind: "unknown", reason: "no verifier recognised the token" };
    const outcome = verifier.verify(token);
    if (outcome instanceof Promise) {
      return outcome.then((known) => (known.kind === "unknown" ? verifyFrom(index + 1, token) : known));
    }
    return outcome.kind === "unknown" ? verifyFrom(index + 1, token) : outcome;
  }

  return {
    verify: (token) => verifyFrom(0, token),
    get problem() {
      const problems = verifiers.flatMap(({ problem }) => problem ?? []);
      return problems.length === 0 ? undefined : problems.join("; ");
    },
    get keysFetched() {
      return verifiers.flatMap(({ keysFetched }) => keysFetched ?? []);
    },
    get fileReloads() {
      return verifiers.flatMap(({ fileReloads }) => fileReloads ?? []);
    },
    async reload() {
      await Promise.all(verifiers.map(async (verifier) => await verifier.reload?.()));
    },
    close() {
      for (const verifier of verifiers) verifier.close?.();
    },
  };
}

/** The context key for a call's principal. `undefined` if the call is open, or refused before verification. */
export const principalKey: ContextKey<Principal | undefined> = createContextKey<Principal | undefined>(undefined);
