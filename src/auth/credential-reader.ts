import { readBearerToken, tokenLimitChars, type BearerProblem } from "./bearer-token.ts";
import { BoundedCache } from "./bounded-cache.ts";
import { digestOf, type PresentedToken } from "./token-verifier.ts";

/** Reads the credential of a request, or says why there is none. */
export type CredentialReader = (
  authorization: string | null,
  connection: object | undefined,
) => { readonly kind: "presented"; readonly token: PresentedToken } | BearerProblem;

interface Presented {
  readonly kind: "presented";
  readonly token: PresentedToken;
}

interface LastRead {
  readonly authorization: string;
  readonly credential: Presented;
}

/** Digests of one generation of those that are known to be of well-formed tokens: the callers of a busy day, some 2 MB. */
const wellFormedMax = 10_000;

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
  const wellFormed = new BoundedCache<true>(wellFormedMax);

  return function readCredential(authorization, connection) {
    // bench/auth: 0.1 µs for a token of 900 characters, where its SHA-256 costs 0.8 µs and its syntax 0.5 µs.
    const last = connection === undefined ? undefined : lastOf.get(connection);
    if (last !== undefined && last.authorization === authorization) return last.credential;
    const credential = readAgain(authorization) ?? readAnew(authorization);
    if (credential.kind !== "presented") return credential;
    if (connection !== undefined && authorization !== null) lastOf.set(connection, { authorization, credential });
    return credential;
  };

  function readAgain(authorization: string | null): Presented | undefined {
    if (authorization === null || !authorization.startsWith(usualPrefix)) return undefined;
    if (authorization.length > usualPrefix.length + tokenLimitChars) return undefined;
    const text = authorization.slice(usualPrefix.length);
    const digest = digestOf(text);
    return wellFormed.get(digest) === undefined ? undefined : { kind: "presented", token: { text, digest } };
  }

  function readAnew(authorization: string | null): Presented | BearerProblem {
    const read = readBearerToken(authorization);
    if (read.kind !== "token") return read;
    const token = { text: read.token, digest: digestOf(read.token) };
    wellFormed.set(token.digest, true);
    return { kind: "presented", token };
  }
}
