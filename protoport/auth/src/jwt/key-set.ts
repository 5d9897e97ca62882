import { createLocalJWKSet, type CryptoKey, type JSONWebKeySet, type JWK } from "jose";

import { isJsonObject, type JsonObject, parseJsonObject } from "../json-object.ts";
import { withProblems, parsed, type ParseResult } from "../inputs/index.ts";
import type { JwtAlgorithm } from "./jwt-algorithm.ts";

/** Maximum number of keys that are used from a key set. Providers publish two to ten keys. */
const maxKeys = 100;

/** Minimum length of an RSA key, in bits (RFC 7518 §3.3 and §3.5). */
const rsaModulusMinBits = 2048;

/** Maximum length of an RSA key, in bits. Checking a signature with a longer key takes milliseconds. */
const maxRsaModulusBits = 8192;

/** The key members passed to jose, which rejects keys with `oth`, for example, or with a string for `ext`. */
const publicMembers = ["kty", "crv", "x", "y", "n", "e", "kid", "alg", "use"] as const;

/**
 * Parses a JWK Set (RFC 7517 §5) and returns the keys that can be imported for one of the algorithms. The returned keys
 * have only public members.
 *
 * Keys for other purposes, symmetric keys and invalid keys are ignored, as §5 requires. Keys with a private part are
 * ignored too, because anyone who reads the published key set could sign with them. A set without a usable key is a
 * problem, except for the empty set `{"keys":[]}`, which a provider publishes to withdraw all its keys.
 */
export async function readKeySet(
  text: string,
  algorithms: readonly JwtAlgorithm[],
): Promise<ParseResult<JSONWebKeySet>> {
  const document = parseJsonObject(text, "the key set");
  if (document.kind === "problems") return document;
  const { keys } = document.value;
  if (!Array.isArray(keys)) return withProblems('the key set has no "keys" array');
  if (keys.length === 0) return parsed({ keys: [] });
  const read = await Promise.all(keys.slice(0, maxKeys).map((key: unknown) => readKey(key, algorithms)));
  const usable = read.filter((key) => key !== undefined);
  if (usable.length > 0) return parsed({ keys: usable });
  return withProblems(`none of the ${keys.length} keys in the key set can verify ${algorithms.join(", ")}`);
}

async function readKey(key: unknown, algorithms: readonly JwtAlgorithm[]): Promise<JWK | undefined> {
  if (!isJsonObject(key) || !canVerify(key)) return undefined;
  const jwk = publicMembersOf(key);
  const find = createLocalJWKSet({ keys: [jwk] });
  const imported = await Promise.all(algorithms.map((alg) => find({ alg }).catch(() => undefined)));
  return imported.some((found) => found !== undefined && isAllowedLength(found)) ? jwk : undefined;
}

// RFC 7517 §4.2 to §4.4 define the members. `d` is the private part in every kind of key (RFC 7518 §6, RFC 8037 §2).
function canVerify({ use, key_ops: operations, alg, d }: JsonObject): boolean {
  return (
    (use === undefined || use === "sig") &&
    (operations === undefined || (Array.isArray(operations) && operations.includes("verify"))) &&
    (alg === undefined || typeof alg === "string") &&
    d === undefined
  );
}

function publicMembersOf(key: JsonObject): JWK {
  const members = publicMembers.flatMap((name) => {
    const value = key[name];
    return typeof value === "string" ? [[name, value] as const] : [];
  });
  return Object.fromEntries(members);
}

function isAllowedLength({ algorithm }: CryptoKey): boolean {
  if (!("modulusLength" in algorithm) || typeof algorithm.modulusLength !== "number") return true;
  return algorithm.modulusLength >= rsaModulusMinBits && algorithm.modulusLength <= maxRsaModulusBits;
}
