import { readBearerToken, tokenLimitChars, type BearerProblem } from "./bearer-token.ts";
import { BoundedCache } from "./bounded-cache.ts";
import { digestOf, type PresentedToken } from "./token-verifier.ts";

/** Reads the credential of a request, or says why there is none. */
export type CredentialReader = (
  authorization: string | null,
  connection: object | undefined,
) => PresentedCredential | BearerProblem;

interface PresentedCredential {
  readonly kind: "presented";
  readonly token: PresentedToken;
}

interface LastRead {
  readonly authorization: string;
  readonly credential: PresentedCredential;
}

/** Digests of one generation of the cache: the callers of a busy day. Two generations are some 2 MB. */
const digestsMax = 10_000;

const usualPrefix = "Bearer ";

/**
 * Returns a reader that remembers the last credential of each connection, because a client repeats it with every request.
 *
 * Only the reading is remembered, never the verdict: whether the token is good is asked each time, and so nothing has to be
 * made void when tokens, keys or clocks change. What is remembered of a token beyond its connection is its digest alone:
 * whoever comes with the digest of a well-formed token comes with that token, and no character of it need be looked at.
 */
export function createCredentialReader(): CredentialReader {
  const lastOf = new WeakMap<object, LastRead>();
  const wellFormed = new BoundedCache<true>(digestsMax);

  return function readCredential(authorization, connection) {
    // bench/auth: 0.1 µs for a token of 900 characters, where its SHA-256 costs 0.8 µs and its syntax 0.5 µs.
    const last = connection === undefined ? undefined : lastOf.get(connection);
    if (last !== undefined && last.authorization === authorization) return last.credential;
    const credential = readAnew(authorization);
    if (credential.kind !== "presented") return credential;
    if (connection !== undefined && authorization !== null) lastOf.set(connection, { authorization, credential });
    return credential;
  };

  function readAnew(authorization: string | null): PresentedCredential | BearerProblem {
    // Hashed before it is known to be well-formed, which costs a malformed header 1 µs, and all others half of their reading.
    const likely = toLikelyToken(authorization);
    if (likely !== undefined && wellFormed.get(likely.digest) === true) return { kind: "presented", token: likely };
    const read = readBearerToken(authorization);
    if (read.kind !== "token") return read;
    const token = read.token === likely?.text ? likely : toPresentedToken(read.token);
    wellFormed.set(token.digest, true);
    return { kind: "presented", token };
  }
}

/** What stands where clients put the token; `undefined` where it is not as usual, or too long to be one. */
function toLikelyToken(authorization: string | null): PresentedToken | undefined {
  if (authorization === null || !authorization.startsWith(usualPrefix)) return undefined;
  if (authorization.length > usualPrefix.length + tokenLimitChars) return undefined;
  return toPresentedToken(authorization.slice(usualPrefix.length));
}

function toPresentedToken(text: string): PresentedToken {
  return { text, digest: digestOf(text) };
}
