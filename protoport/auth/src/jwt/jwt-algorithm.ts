// Only asymmetric algorithms. With HS256, anyone who knows the public key could sign (RFC 8725 §3.1).
/** The signature algorithms that a program can allow. */
export const jwtAlgorithms = [
  "RS256",
  "RS384",
  "RS512",
  "PS256",
  "PS384",
  "PS512",
  "ES256",
  "ES384",
  "ES512",
  "EdDSA",
  "Ed25519",
] as const;

/** A token signature's `alg`. */
export type JwtAlgorithm = (typeof jwtAlgorithms)[number];

/** The algorithms allowed by default, which are those that identity providers use. */
export const defaultJwtAlgorithms: readonly JwtAlgorithm[] = ["RS256", "PS256", "ES256", "EdDSA"];

/** Returns whether a string is one of {@link jwtAlgorithms}. */
export function isJwtAlgorithm(text: string): text is JwtAlgorithm {
  return jwtAlgorithms.some((name) => name === text);
}
