import { createLocalJWKSet, errors, type JSONWebKeySet } from "jose";

import { parseJsonObject } from "../json-object.ts";
import { notParsed, parsed, type ParseResult } from "../../inputs/index.ts";
import type { JwtAlgorithm } from "./jwt-algorithm.ts";

/**
 * Reads a JWK Set (RFC 7517 §5), which must be empty or hold a key for one of the algorithms.
 *
 * Keys for other purposes and broken keys do no harm, as §5 requires: jose imports a key when a token first names it.
 */
export async function readKeySet(
  text: string,
  algorithms: readonly JwtAlgorithm[],
): Promise<ParseResult<JSONWebKeySet>> {
  const document = parseJsonObject(text, "the key set");
  if (document.kind === "problems") return document;
  const set: JSONWebKeySet = JSON.parse(text);
  try {
    const uses = await Promise.all(algorithms.map((algorithm) => hasKeyFor(set, algorithm)));
    if (set.keys.length === 0 || uses.includes(true)) return parsed(set);
    return notParsed(`none of the ${set.keys.length} keys of the set verifies ${algorithms.join(", ")}`);
  } catch {
    return notParsed('the key set has no array "keys" of objects');
  }
}

async function hasKeyFor(set: JSONWebKeySet, algorithm: JwtAlgorithm): Promise<boolean> {
  return await createLocalJWKSet(set)({ alg: algorithm }).then(
    () => true,
    (error: unknown) => error instanceof errors.JWKSMultipleMatchingKeys,
  );
}
