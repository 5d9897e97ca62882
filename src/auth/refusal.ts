import { Code, ConnectError } from "@connectrpc/connect";

import { formatChallenge } from "./challenge.ts";
import type { TokenProblem } from "./token-verifier.ts";

/** What was wrong with the credential of a refused request. */
export type RefusalKind =
  | "missing"
  | "other-scheme"
  | "malformed"
  | "invalid"
  | "expired"
  | "insufficient-scope"
  | "unavailable";

/** Why a request was refused, for the log and the audit line; it is the `cause` of the error and never reaches the client. */
export class Refusal {
  readonly kind: RefusalKind;
  readonly reason: string;

  constructor(kind: RefusalKind, reason: string) {
    this.kind = kind;
    this.reason = reason;
  }
}

/** Returns why `bearerAuth` refused the request that ended in this error, or `undefined` when the error is of another origin. */
export function refusalOf(error: unknown): Refusal | undefined {
  return error instanceof ConnectError && error.cause instanceof Refusal ? error.cause : undefined;
}

/** Makes the errors with which requests are refused. */
export interface Refusals {
  /** The header holds no bearer token. */
  credential(kind: "missing" | "other-scheme" | "malformed"): ConnectError;
  /** The verifier does not vouch for the token. */
  token(problem: TokenProblem): ConnectError;
  /** The token is good, but not for this. */
  scope(scope: string): ConnectError;
}

/**
 * Returns the refusals of one realm: each has the code, the message and the challenge of its situation.
 *
 * The texts say *that* a token is bad, expired or too narrow, so that a client knows whether to fetch
 * another one; they never say why, which would help only who tries tokens. A field is prepared once,
 * an error is made for each request: Connect's layers write to its metadata.
 *
 * @throws RangeError when the realm or the URL cannot stand in a header field
 */
export function createRefusals(realm: string, resourceMetadata: string | undefined): Refusals {
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
      // RFC 6750 §3.1: a request without any bearer credential is told no error code.
      return kind === "malformed"
        ? unauthenticated(malformed.errorDescription, malformedField, new Refusal(kind, "not one bearer token"))
        : unauthenticated("a bearer token is required", bare, new Refusal(kind, "no bearer token"));
    },
    token(problem) {
      if (problem.kind === "unavailable") return cannotBeChecked(problem);
      return problem.kind === "expired"
        ? unauthenticated(expired.errorDescription, expiredField, new Refusal("expired", problem.reason))
        : unauthenticated(invalid.errorDescription, invalidField, new Refusal("invalid", problem.reason));
    },
    scope(scope) {
      const errorDescription = `the token lacks the scope ${scope}`;
      const field = formatChallenge({ realm, error: "insufficient_scope", errorDescription, scope, resourceMetadata });
      const cause = new Refusal("insufficient-scope", errorDescription);
      return new ConnectError(errorDescription, Code.PermissionDenied, { "www-authenticate": field }, [], cause);
    },
  };
}

function unauthenticated(message: string, challenge: string, cause: Refusal): ConnectError {
  return new ConnectError(message, Code.Unauthenticated, { "www-authenticate": challenge }, [], cause);
}

function cannotBeChecked(problem: TokenProblem & { readonly kind: "unavailable" }): ConnectError {
  const cause = new Refusal("unavailable", problem.reason);
  // RFC 9110 §10.2.3: delay-seconds.
  const header = { "retry-after": String(problem.retryAfterS) };
  return new ConnectError("the token cannot be checked now", Code.Unavailable, header, [], cause);
}
