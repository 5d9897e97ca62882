/** The tolerated clock skew between issuer and server, in seconds: enough for a virtual machine that just resumed. */
export const clockSkewS = 30;

/** Maximum length of a subject, in characters (OpenID Connect Core §2). Logs and deletion records contain subjects. */
export const maxSubjectChars = 255;

/** Returns whether a claim can be a principal's subject. */
export function isSubject(claim: unknown): claim is string {
  return typeof claim === "string" && claim !== "" && claim.length <= maxSubjectChars;
}

/** Reads a token's scopes. `scope` (RFC 8693 §4.2) and Entra's `scp` are strings, and Okta's `scp` is an array. */
export function readScopes(claim: unknown): readonly string[] {
  if (typeof claim === "string") return claim.split(" ").filter((scope) => scope !== "");
  return Array.isArray(claim) ? claim.filter((scope) => typeof scope === "string") : [];
}
