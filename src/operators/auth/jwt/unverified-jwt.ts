import { decodeJwt, decodeProtectedHeader } from "jose";

/** What an unverified token claims: good for finding the key, and for nothing else. */
export interface UnverifiedJwt {
  readonly algorithm: string;
  readonly keyId: string | undefined;
  readonly type: string | undefined;
  readonly issuer: string;
}

// JWS compact serialisation (RFC 7515 §7.1) with a signature. Encrypted tokens have five parts; unsecured ones have an
// empty third part.
const compactJws = /^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$/;

/**
 * Reads a signed JWT without verifying it; `undefined` for any other text. References to keys (`jku`, `x5u`, `jwk`) are
 * ignored.
 */
export function readUnverifiedJwt(text: string): UnverifiedJwt | undefined {
  if (!compactJws.test(text)) return undefined;
  try {
    const { alg, kid, typ }: Record<string, unknown> = decodeProtectedHeader(text);
    const { iss } = decodeJwt(text);
    if (typeof alg !== "string" || typeof iss !== "string") return undefined;
    return { algorithm: alg, keyId: textOrNone(kid), type: textOrNone(typ), issuer: iss };
  } catch {
    // A token that cannot be decoded is not ours.
    return undefined;
  }
}

function textOrNone(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}
