import { type BearerProblem, readBearerToken } from "./bearer-token.ts";
import { digestOf, type PresentedToken } from "./token-verifier.ts";

/** Reads the credential of a request, or returns why there is none. */
export type CredentialReader = (
  authorization: string | null,
  connection: object,
) => PresentedCredential | BearerProblem;

interface PresentedCredential {
  readonly kind: "presented";
  readonly token: PresentedToken;
}

interface LastRead {
  readonly authorization: string;
  readonly credential: PresentedCredential;
}

/**
 * Creates a reader that remembers the last credential of each connection, because clients repeat it with every request.
 *
 * Only the parsed credential is remembered, never whether it is valid: the verifier is asked every time, so nothing
 * needs to be invalidated when tokens, keys or the clock change.
 */
export function createCredentialReader(): CredentialReader {
  const lastOf = new WeakMap<object, LastRead>();

  return function readCredential(authorization, connection) {
    // bench/auth: 0.1 µs for a token of 900 characters, where its SHA-256 costs 0.8 µs and its syntax 0.5 µs.
    const last = lastOf.get(connection);
    if (last !== undefined && last.authorization === authorization) return last.credential;
    const read = readBearerToken(authorization);
    if (read.kind !== "token") return read;
    const credential: PresentedCredential = {
      kind: "presented",
      token: { text: read.token, digest: digestOf(read.token) },
    };
    if (authorization !== null) lastOf.set(connection, { authorization, credential });
    return credential;
  };
}
