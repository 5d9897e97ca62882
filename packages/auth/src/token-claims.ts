/**
 * The clock skew between issuer and server that is tolerated, in seconds.
 *
 * NTP keeps clocks within one second of each other. 30 seconds also cover a virtual machine that was just resumed.
 */
export const clockSkewS = 30;

/**
 * The longest subject, in characters (OpenID Connect Core §2). Subjects are written to logs and deletion records.
 */
export const subjectMaxChars = 255;

/** Returns whether a claim can be a principal's subject. */
export function isSubject(claim: unknown): claim is string {
  return typeof claim === "string" && claim !== "" && claim.length <= subjectMaxChars;
}

/**
 * Reads a token's scopes from a string separated by spaces (RFC 8693 §4.2 `scope`, Entra's `scp`) or an array (Okta's
 * `scp`).
 */
export function readScopes(claim: unknown): readonly string[] {
  if (typeof claim === "string") return claim.split(" ").filter((scope) => scope !== "");
  return Array.isArray(claim) ? claim.filter((scope) => typeof scope === "string") : [];
}
