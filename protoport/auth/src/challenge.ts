/** A `Bearer` challenge's parameters. */
export interface Challenge {
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
