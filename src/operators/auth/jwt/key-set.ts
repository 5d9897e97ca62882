import { importJWK, type CryptoKey, type JWK } from "jose";

import { isJsonObject, parseJsonObject, type JsonObject } from "../json-object.ts";
import { parsed, notParsed, type ParseResult } from "../parse-result.ts";
import { fitsAlgorithm, type JwtAlgorithm } from "./jwt-algorithm.ts";

/** The public keys of one issuer at one time. Sets are compared by identity. */
export interface KeySet {
  /** How many keys are usable. */
  readonly size: number;
  /** Finds the key of a signature, by the `alg` and `kid` of the token's header. */
  find(algorithm: JwtAlgorithm, keyId: string | undefined): KeySearch;
}

/** The result of {@link KeySet.find}. */
export type KeySearch =
  | { readonly kind: "key"; readonly key: CryptoKey }
  /** No key has this id; a newer set may contain it. */
  | { readonly kind: "unknown-key" }
  /** The token does not say which of several keys signed it. */
  | { readonly kind: "ambiguous" };

interface UsableKey {
  readonly keyId: string | undefined;
  readonly algorithm: JwtAlgorithm;
  readonly key: CryptoKey;
}

/** The most keys of a set that are read; providers publish two to ten. */
const keysMax = 100;

/** The shortest RSA key that is used (RFC 7518 §3.3 and §3.5). */
const rsaModulusMinBits = 2048;

/** The longest RSA key that is used: a longer one costs milliseconds per signature. */
const rsaModulusMaxBits = 8192;

/** A key set without keys: the key of every token is unknown. */
export const noKeys: KeySet = { size: 0, find: () => ({ kind: "unknown-key" }) };

/**
 * Returns whether a document is a JWK Set that explicitly contains no keys: `{"keys":[]}`.
 *
 * That is how a provider withdraws all of them, as opposed to a document that is broken.
 */
export function withdrawsAllKeys(text: string): boolean {
  const document = parseJsonObject(text, "the key set");
  return document.kind === "value" && Array.isArray(document.value["keys"]) && document.value["keys"].length === 0;
}

/**
 * Reads a JWK Set (RFC 7517 §5) for the allowed algorithms.
 *
 * Keys for other purposes, symmetric keys and broken keys are ignored, as §5 requires; a set without a usable key is a
 * problem. Only the public members of each key are read.
 */
export async function readKeySet(text: string, algorithms: readonly JwtAlgorithm[]): Promise<ParseResult<KeySet>> {
  const document = parseJsonObject(text, "the key set");
  if (document.kind === "problems") return document;
  const { keys } = document.value;
  if (!Array.isArray(keys)) return notParsed('the key set has no array "keys"');
  const jwks = keys.slice(0, keysMax).filter(isJsonObject);
  const uses = jwks.flatMap((jwk) =>
    algorithms.filter((algorithm) => fitsAlgorithm(jwk, algorithm)).map((algorithm) => ({ jwk, algorithm })),
  );
  const imported = await Promise.all(uses.map(({ jwk, algorithm }) => importKey(jwk, algorithm)));
  const usable = imported.filter((key) => key !== undefined);
  if (usable.length === 0)
    return notParsed(`none of the ${keys.length} keys of the set verifies ${algorithms.join(", ")}`);
  return parsed({
    size: new Set(usable.map(({ keyId }) => keyId)).size,
    find: (algorithm, keyId) => find(usable, algorithm, keyId),
  });
}

function find(keys: readonly UsableKey[], algorithm: JwtAlgorithm, keyId: string | undefined): KeySearch {
  const fitting = keys.filter((key) => key.algorithm === algorithm && (keyId === undefined || key.keyId === keyId));
  const [first] = fitting;
  if (first === undefined) return { kind: "unknown-key" };
  // Trying several keys would multiply the cost of a bad token.
  return fitting.length === 1 ? { kind: "key", key: first.key } : { kind: "ambiguous" };
}

async function importKey(jwk: JsonObject, algorithm: JwtAlgorithm): Promise<UsableKey | undefined> {
  const keyId = typeof jwk["kid"] === "string" ? jwk["kid"] : undefined;
  try {
    const key = await importJWK(publicMembersOf(jwk), algorithm);
    return key instanceof Uint8Array || !hasFitLength(key) ? undefined : { keyId, algorithm, key };
  } catch {
    // Missing or oversized members, or a point that is not on the curve: one broken key must not disable the others.
    return undefined;
  }
}

function publicMembersOf(jwk: JsonObject): JWK {
  const members = ["kty", "crv", "x", "y", "n", "e"].flatMap((name) => {
    const value = jwk[name];
    return typeof value === "string" ? [[name, value] as const] : [];
  });
  return Object.fromEntries(members);
}

function hasFitLength({ algorithm }: CryptoKey): boolean {
  if (!("modulusLength" in algorithm) || typeof algorithm.modulusLength !== "number") return true;
  return algorithm.modulusLength >= rsaModulusMinBits && algorithm.modulusLength <= rsaModulusMaxBits;
}
