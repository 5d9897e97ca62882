/** Reads the scopes of a token: a text parted by spaces (RFC 8693 §4.2 `scope`, Entra's `scp`), or an array of texts as Okta has it. */
export function readScopes(claim: unknown): readonly string[] {
  if (typeof claim === "string") return claim.split(" ").filter((scope) => scope !== "");
  return Array.isArray(claim) ? claim.filter((scope) => typeof scope === "string") : [];
}
