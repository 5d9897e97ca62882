import { decodeJwt } from "jose";

import { OutcomeCache, type TimedOutcome } from "../outcome-cache.ts";
import type { PresentedToken, TokenOutcome, TokenVerifier } from "../token-verifier.ts";
import { type TrustedIssuer, verifyJwt } from "./verify-jwt.ts";

/** An outcome that is valid while its issuer uses this set: a token is rejected once its key is withdrawn. */
interface ProvenOutcome extends TimedOutcome {
  readonly trusted: TrustedIssuer;
  readonly set: object;
}

const notOurs: TokenOutcome = { kind: "unknown", reason: "not a signed JWT from a trusted issuer" };

/**
 * Creates a verifier of JSON Web Tokens that trusted issuers have signed; tokens of other issuers are `unknown`.
 *
 * A known token is answered at once from the cache, until it expires or the keys of its issuer change. A new one costs
 * a signature check; one that names an unknown key may wait for newer keys.
 */
export function createJwtVerifier(issuers: readonly TrustedIssuer[]): TokenVerifier {
  const trustedBy = new Map<unknown, TrustedIssuer>(issuers.map((trusted) => [trusted.issuer, trusted]));
  const known = new OutcomeCache<ProvenOutcome>();

  function verify(token: PresentedToken): TokenOutcome | Promise<TokenOutcome> {
    const proven = known.get(token.digest, Date.now());
    if (proven !== undefined && proven.trusted.keys.current === proven.set) return proven.outcome;
    const trusted = trustedBy.get(issuerOf(token.text));
    return trusted === undefined ? notOurs : known.askOnce(token.digest, () => verifyAnew(token, trusted));
  }

  async function verifyAnew({ text, digest }: PresentedToken, trusted: TrustedIssuer): Promise<TokenOutcome> {
    // The set from before: if it changes meanwhile, or is too old, nobody knows which one the outcome is of.
    const set = trusted.keys.current;
    const timed = await verifyJwt(text, trusted);
    if (set !== undefined) known.set(digest, { ...timed, trusted, set });
    return timed.outcome;
  }

  return {
    verify,
    get problem() {
      const problems = issuers.flatMap(({ keys }) => keys.problem ?? []);
      return problems.length === 0 ? undefined : problems.join("; ");
    },
    get keysFetched() {
      return issuers.flatMap(({ issuer, keys: { fetchedAtMs } }) =>
        fetchedAtMs === undefined ? [] : [{ issuer, atMs: fetchedAtMs }],
      );
    },
    get fileReloads() {
      return issuers.flatMap(({ keys }) => keys.fileReload ?? []);
    },
    async reload() {
      await Promise.all(issuers.map(({ keys }) => keys.reload()));
    },
    close() {
      for (const { keys } of issuers) keys.close();
    },
  };
}

// JWS compact serialisation (RFC 7515 §7.1) with a signature. Encrypted tokens have five parts; unsecured ones have an
// empty third part.
const compactJws = /^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$/;

/** Returns the `iss` of a signed JWT, which is not verified: good for finding the keys, and for nothing else. */
function issuerOf(text: string): unknown {
  if (!compactJws.test(text)) return undefined;
  try {
    return decodeJwt(text).iss;
  } catch {
    // A token that cannot be decoded is not ours.
    return undefined;
  }
}
