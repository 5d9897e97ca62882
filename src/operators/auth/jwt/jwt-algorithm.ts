import type { JsonObject } from "../json-object.ts";

/** The kind of key that an algorithm uses, in the terms of RFC 7518 and RFC 8037. */
interface KeyShape {
  readonly kty: "RSA" | "EC" | "OKP";
  readonly crv?: string;
}

/** The `alg` of a token's signature. */
export type JwtAlgorithm =
  | "RS256"
  | "RS384"
  | "RS512"
  | "PS256"
  | "PS384"
  | "PS512"
  | "ES256"
  | "ES384"
  | "ES512"
  | "EdDSA"
  | "Ed25519";

// Asymmetric algorithms only. HS256 and the like would let anyone who knows the public key sign with it (RFC 8725
// §3.1), and "none" is no signature at all: neither can be configured.
const keyShapes: Readonly<Record<JwtAlgorithm, KeyShape>> = {
  RS256: { kty: "RSA" },
  RS384: { kty: "RSA" },
  RS512: { kty: "RSA" },
  PS256: { kty: "RSA" },
  PS384: { kty: "RSA" },
  PS512: { kty: "RSA" },
  ES256: { kty: "EC", crv: "P-256" },
  ES384: { kty: "EC", crv: "P-384" },
  ES512: { kty: "EC", crv: "P-521" },
  EdDSA: { kty: "OKP", crv: "Ed25519" },
  Ed25519: { kty: "OKP", crv: "Ed25519" },
};

/** The algorithms that can be allowed. */
export const jwtAlgorithms: readonly string[] = Object.keys(keyShapes);

/** The algorithms that are allowed by default: what identity providers use. */
export const defaultJwtAlgorithms: readonly JwtAlgorithm[] = ["RS256", "PS256", "ES256", "EdDSA"];

/** Returns whether a text names one of {@link jwtAlgorithms}. */
export function isJwtAlgorithm(text: string): text is JwtAlgorithm {
  return Object.hasOwn(keyShapes, text);
}

/** Returns whether a JSON Web Key can verify signatures of an algorithm, by its members (RFC 7517 §4). */
export function fitsAlgorithm(jwk: JsonObject, algorithm: JwtAlgorithm): boolean {
  const shape = keyShapes[algorithm];
  const { kty, crv, use, key_ops: operations, alg } = jwk;
  return (
    kty === shape.kty &&
    (shape.crv === undefined || crv === shape.crv) &&
    (use === undefined || use === "sig") &&
    (operations === undefined || (Array.isArray(operations) && operations.includes("verify"))) &&
    (alg === undefined || alg === algorithm)
  );
}
