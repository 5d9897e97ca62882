/**
 * Seconds by which the clocks of issuer and server may differ.
 *
 * NTP keeps machines within one; 30 covers a virtual machine that was just resumed.
 */
export const clockSkewS = 30;

/** The longest subject, in characters: OpenID Connect Core §2 lets `sub` have 255. It goes into logs and into deletion records. */
export const subjectMaxChars = 255;

/** Whether a claim can be the subject of a principal. */
export function isSubject(claim: unknown): claim is string {
  return typeof claim === "string" && claim !== "" && claim.length <= subjectMaxChars;
}

/** Reads the scopes of a token: a text parted by spaces (RFC 8693 §4.2 `scope`, Entra's `scp`), or an array of texts as Okta has it. */
export function readScopes(claim: unknown): readonly string[] {
  if (typeof claim === "string") return claim.split(" ").filter((scope) => scope !== "");
  return Array.isArray(claim) ? claim.filter((scope) => typeof scope === "string") : [];
}
