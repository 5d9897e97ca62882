import { Code, ConnectError } from "@connectrpc/connect";
import type { BearerProblem } from "./bearer-token.ts";
import type { AuthErrorCode } from "./inputs/index.ts";
import type { TokenProblem } from "./token-verifier.ts";

/** A refusal's kind. */
type RefusalKind =
  | "missing"
  | "other-scheme"
  | "malformed"
  | "invalid"
  | "expired"
  | "insufficient-scope"
  | "unavailable";

/** Why a credential was refused, for the audit log: the `cause` of the response's error, never sent to the client. */
class CredentialRefusal {
  readonly kind: RefusalKind;
  readonly reason: string;

  constructor(kind: RefusalKind, reason: string) {
    this.kind = kind;
    this.reason = reason;
  }
}

/** Returns why the credential was refused, or `undefined` for an error that is not about the credential. */
export function credentialRefusalOf(error: unknown): CredentialRefusal | undefined {
  return error instanceof ConnectError && error.cause instanceof CredentialRefusal ? error.cause : undefined;
}

/** Creates the errors for calls whose credential is refused. */
export interface CredentialErrors {
  /** Returns the error for a header that contains no bearer token. */
  credential(kind: BearerProblem["kind"]): ConnectError;
  /** Returns the error for a token that the verifier did not accept. */
  token(problem: TokenProblem): ConnectError;
  /** Returns the error for a valid token that lacks a scope. @param required - all scopes in the challenge */
  scope(missing: string, required: readonly string[]): ConnectError;
}

/** The members of challenges that {@link createCredentialErrors} needs. */
interface ChallengeOptions {
  readonly realm: string;
  readonly resourceMetadata: string | undefined;
  /** The `scope` of challenges for requests without a valid token. */
  readonly initialScope: string | undefined;
}

/**
 * Returns functions that create errors with a challenge for the realm.
 *
 * The messages state *that* a token is invalid, has expired or lacks a scope, so that a client knows whether to obtain
 * another token. The messages never state why, which would help an attacker who guesses tokens. Challenges are
 * formatted once, because anyone can trigger refusals. Each call gets a new error, because Connect edits its metadata.
 *
 * @throws RangeError when the realm or the URL is not printable ASCII
 */
export function createCredentialErrors({ realm, resourceMetadata, initialScope }: ChallengeOptions): CredentialErrors {
  function unauthenticated(
    errorCode: AuthErrorCode,
    message: string,
    error?: Challenge["error"],
  ): (cause: CredentialRefusal) => ConnectError {
    const errorDescription = error && message;
    const field = formatChallenge({ realm, error, errorDescription, scope: initialScope, resourceMetadata });
    const header = { "www-authenticate": field };
    return (cause) => credentialError(errorCode, message, Code.Unauthenticated, header, cause);
  }
  // A request without any bearer credential gets no error code (RFC 6750 §3.1).
  const missingCredential = unauthenticated("ERR_CREDENTIAL_MISSING", "a bearer token is required");
  const malformed = unauthenticated(
    "ERR_CREDENTIAL_MALFORMED",
    "the Authorization header must contain a single bearer token",
    "invalid_request",
  );
  const expired = unauthenticated("ERR_TOKEN_EXPIRED", "the token has expired", "invalid_token");
  const invalid = unauthenticated("ERR_TOKEN_INVALID", "the token is not valid", "invalid_token");

  return {
    credential(kind) {
      return kind === "malformed"
        ? malformed(new CredentialRefusal(kind, "the Authorization header is not a single bearer token"))
        : missingCredential(new CredentialRefusal(kind, "the request has no bearer token"));
    },
    token(problem) {
      if (problem.kind === "unavailable") return verificationUnavailableError(problem);
      return problem.kind === "expired"
        ? expired(new CredentialRefusal("expired", problem.reason))
        : invalid(new CredentialRefusal("invalid", problem.reason));
    },
    scope(missing, required) {
      const errorDescription = `the token lacks the scope ${missing}`;
      const scope = required.join(" ");
      const field = formatChallenge({ realm, error: "insufficient_scope", errorDescription, scope, resourceMetadata });
      const cause = new CredentialRefusal("insufficient-scope", errorDescription);
      const header = { "www-authenticate": field };
      return credentialError("ERR_SCOPE_INSUFFICIENT", errorDescription, Code.PermissionDenied, header, cause);
    },
  };
}

function verificationUnavailableError(problem: TokenProblem & { readonly kind: "unavailable" }): ConnectError {
  const cause = new CredentialRefusal("unavailable", problem.reason);
  // Retry-After in seconds (RFC 9110 §10.2.3).
  const header = { "retry-after": String(problem.retryAfterS) };
  return credentialError(
    "ERR_VERIFICATION_UNAVAILABLE",
    "the token cannot be verified right now",
    Code.Unavailable,
    header,
    cause,
  );
}

function credentialError(
  errorCode: AuthErrorCode,
  message: string,
  code: Code,
  header: Readonly<Record<string, string>>,
  cause: CredentialRefusal,
): ConnectError {
  return Object.assign(new ConnectError(message, code, header, [], cause), { errorCode });
}

/** A `Bearer` challenge's parameters. */
interface Challenge {
  readonly realm: string;
  /** An error code from RFC 6750 §3.1. Omitted when the request had no bearer credential at all. */
  readonly error?: "invalid_request" | "invalid_token" | "insufficient_scope" | undefined;
  readonly errorDescription?: string | undefined;
  /** The scopes that the call requires, separated by spaces. */
  readonly scope?: string | undefined;
  /** The URL of this resource's metadata document (RFC 9728 §5.1). */
  readonly resourceMetadata?: string | undefined;
}

/**
 * Formats a challenge (RFC 6750 §3) as a `WWW-Authenticate` field value (RFC 9110 §11.6.1).
 *
 * Every value is a quoted-string, even where a token is allowed. RFC 6750 requires the quotes for `scope` and the error
 * parameters, and some clients parse only quoted values.
 *
 * @throws RangeError when a value contains a character outside printable ASCII
 *
 * @example
 * ```ts
 * formatChallenge({ realm: "orders", error: "invalid_token" });
 * // Bearer realm="orders", error="invalid_token"
 * ```
 */
export function formatChallenge(challenge: Challenge): string {
  const parameters: readonly (readonly [name: string, value: string | undefined])[] = [
    ["realm", challenge.realm],
    ["error", challenge.error],
    ["error_description", challenge.errorDescription],
    ["scope", challenge.scope],
    ["resource_metadata", challenge.resourceMetadata],
  ];
  const formatted = parameters.flatMap(([name, value]) =>
    value === undefined ? [] : [`${name}=${toQuotedString(name, value)}`],
  );
  return `Bearer ${formatted.join(", ")}`;
}

// RFC 9110 §5.6.4: quoted-string. obs-text and HTAB are rejected, because recipients disagree on charset and folding.
function toQuotedString(name: string, value: string): string {
  if (!/^[\x20-\x7e]*$/.test(value)) {
    throw new RangeError(`${name} must be printable ASCII, got ${JSON.stringify(value)}`);
  }
  return `"${value.replaceAll(/["\\]/g, String.raw`\$&`)}"`;
}
