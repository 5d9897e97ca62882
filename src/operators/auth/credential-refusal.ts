import { Code, ConnectError } from "@connectrpc/connect";

import { formatChallenge } from "./challenge.ts";
import type { TokenProblem } from "./token-verifier.ts";

/**
 * Why a credential was refused, for the audit line. It is the `cause` of the error that the call is answered with, and
 * never reaches the client.
 */
export class CredentialRefusal {
  readonly kind:
    | "missing"
    | "other-scheme"
    | "malformed"
    | "invalid"
    | "expired"
    | "insufficient-scope"
    | "unavailable";
  readonly reason: string;

  constructor(kind: CredentialRefusal["kind"], reason: string) {
    this.kind = kind;
    this.reason = reason;
  }
}

/** Returns why the credential was refused, or `undefined` for an error that is not about the credential. */
export function credentialRefusalOf(error: unknown): CredentialRefusal | undefined {
  return error instanceof ConnectError && error.cause instanceof CredentialRefusal ? error.cause : undefined;
}

/** The errors that refuse a call because of its credential. */
export interface CredentialErrors {
  /** Returns the error for a header that contains no bearer token. */
  credential(kind: "missing" | "other-scheme" | "malformed"): ConnectError;
  /** Returns the error for a token that the verifier did not accept. */
  token(problem: TokenProblem): ConnectError;
  /** Returns the error for a valid token that lacks this scope. */
  scope(scope: string): ConnectError;
}

/**
 * Returns the errors of one realm: each has the code, the message and the challenge of its situation.
 *
 * The texts say *that* a token is bad, expired or lacks a scope, so that a client knows whether to fetch another one.
 * They never say why, which would only help someone who is guessing tokens. The field values are formatted once; the
 * error is new for each call, because Connect writes to its metadata.
 *
 * @throws RangeError when the realm or the URL contains characters that a header field cannot carry
 */
export function createCredentialErrors(realm: string, resourceMetadata: string | undefined): CredentialErrors {
  const bare = formatChallenge({ realm, resourceMetadata });
  const malformed = {
    error: "invalid_request",
    errorDescription: "the Authorization header is not one bearer token",
  } as const;
  const invalid = { error: "invalid_token", errorDescription: "the token is not valid" } as const;
  const expired = { error: "invalid_token", errorDescription: "the token has expired" } as const;
  const malformedField = formatChallenge({ realm, ...malformed, resourceMetadata });
  const invalidField = formatChallenge({ realm, ...invalid, resourceMetadata });
  const expiredField = formatChallenge({ realm, ...expired, resourceMetadata });

  return {
    credential(kind) {
      // RFC 6750 §3.1: a request without any bearer credential gets no error code.
      return kind === "malformed"
        ? unauthenticated(
            malformed.errorDescription,
            malformedField,
            new CredentialRefusal(kind, "not one bearer token"),
          )
        : unauthenticated("a bearer token is required", bare, new CredentialRefusal(kind, "no bearer token"));
    },
    token(problem) {
      if (problem.kind === "unavailable") return cannotBeChecked(problem);
      return problem.kind === "expired"
        ? unauthenticated(expired.errorDescription, expiredField, new CredentialRefusal("expired", problem.reason))
        : unauthenticated(invalid.errorDescription, invalidField, new CredentialRefusal("invalid", problem.reason));
    },
    scope(scope) {
      const errorDescription = `the token lacks the scope ${scope}`;
      const field = formatChallenge({ realm, error: "insufficient_scope", errorDescription, scope, resourceMetadata });
      const cause = new CredentialRefusal("insufficient-scope", errorDescription);
      return new ConnectError(errorDescription, Code.PermissionDenied, { "www-authenticate": field }, [], cause);
    },
  };
}

function unauthenticated(message: string, challenge: string, cause: CredentialRefusal): ConnectError {
  return new ConnectError(message, Code.Unauthenticated, { "www-authenticate": challenge }, [], cause);
}

function cannotBeChecked(problem: TokenProblem & { readonly kind: "unavailable" }): ConnectError {
  const cause = new CredentialRefusal("unavailable", problem.reason);
  // RFC 9110 §10.2.3: delay-seconds.
  const header = { "retry-after": String(problem.retryAfterS) };
  return new ConnectError("the token cannot be checked now", Code.Unavailable, header, [], cause);
}
