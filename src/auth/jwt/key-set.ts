import { importJWK, type CryptoKey, type JWK } from "jose";

import { isJsonObject, parseJsonObject, type JsonObject } from "../json-object.ts";
import { parsed, unparsed, type Parsed } from "../parsed.ts";
import { fitsAlgorithm, type JwtAlgorithm } from "./jwt-algorithm.ts";

/** The public keys of one issuer, at one time. Two sets are the same set when they are the same object. */
export interface KeySet {
  /** How many keys can verify something. */
  readonly size: number;
  /** Finds the key of a signature, by the `alg` and `kid` of the token's header. */
  find(algorithm: JwtAlgorithm, keyId: string | undefined): KeySearch;
}

/** What was found. */
export type KeySearch =
  | { readonly kind: "key"; readonly key: CryptoKey }
  /** No key has this id; a newer set may have it. */
  | { readonly kind: "unknown-key" }
  /** The token does not say which of several keys signed it. */
  | { readonly kind: "ambiguous" };

interface UsableKey {
  readonly keyId: string | undefined;
  readonly algorithm: JwtAlgorithm;
  readonly key: CryptoKey;
}

/** Keys of a set that are looked at; providers publish two to ten. */
const keysMax = 100;

/** RFC 7518 §3.3 and §3.5: RSA keys below this are not to be used. */
const rsaModulusMinBits = 2048;

/** A modulus above this costs milliseconds a signature. */
const rsaModulusMaxBits = 8192;

/** A key set without keys: every token is by an unknown one. */
export const noKeys: KeySet = { size: 0, find: () => ({ kind: "unknown-key" }) };

/**
 * Whether a document is a JWK Set that says in so many words that there are no keys: `{"keys":[]}`.
 *
 * That is how a provider withdraws all of them, which is not the same as a document that cannot be used.
 */
export function withdrawsAllKeys(text: string): boolean {
  const document = parseJsonObject(text, "the key set");
  return document.kind === "value" && Array.isArray(document.value["keys"]) && document.value["keys"].length === 0;
}

/**
 * Reads a JWK Set (RFC 7517 §5) for the allowed algorithms.
 *
 * Keys for other purposes, symmetric keys and keys that are broken are passed over, as §5 asks; a set
 * in which no key is left is a problem. Of each key only the public members are read.
 */
export async function readKeySet(text: string, algorithms: readonly JwtAlgorithm[]): Promise<Parsed<KeySet>> {
  const document = parseJsonObject(text, "the key set");
  if (document.kind === "problems") return document;
  const { keys } = document.value;
  if (!Array.isArray(keys)) return unparsed('the key set has no array "keys"');
  const jwks = keys.slice(0, keysMax).filter(isJsonObject);
  const uses = jwks.flatMap((jwk) =>
    algorithms.filter((algorithm) => fitsAlgorithm(jwk, algorithm)).map((algorithm) => ({ jwk, algorithm })),
  );
  const imported = await Promise.all(uses.map(({ jwk, algorithm }) => importKey(jwk, algorithm)));
  const usable = imported.filter((key) => key !== undefined);
  if (usable.length === 0)
    return unparsed(`none of the ${keys.length} keys of the set verifies ${algorithms.join(", ")}`);
  return parsed({
    size: new Set(usable.map(({ keyId }) => keyId)).size,
    find: (algorithm, keyId) => find(usable, algorithm, keyId),
  });
}

function find(keys: readonly UsableKey[], algorithm: JwtAlgorithm, keyId: string | undefined): KeySearch {
  const fitting = keys.filter((key) => key.algorithm === algorithm && (keyId === undefined || key.keyId === keyId));
  const [first] = fitting;
  if (first === undefined) return { kind: "unknown-key" };
  // Trying several keys would multiply what a bad token costs.
  return fitting.length === 1 ? { kind: "key", key: first.key } : { kind: "ambiguous" };
}

async function importKey(jwk: JsonObject, algorithm: JwtAlgorithm): Promise<UsableKey | undefined> {
  const keyId = typeof jwk["kid"] === "string" ? jwk["kid"] : undefined;
  try {
    const key = await importJWK(publicMembersOf(jwk), algorithm);
    return key instanceof Uint8Array || !hasFitLength(key) ? undefined : { keyId, algorithm, key };
  } catch {
    // Members that are missing, too long or no point on the curve: one such key must not cost the others.
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
