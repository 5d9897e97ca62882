import { decodeJwt } from "jose";

import { OutcomeCache, type ExpiringOutcome } from "../outcome-cache.ts";
import type { PresentedToken, TokenOutcome, TokenVerifier } from "../token-verifier.ts";
import { type TrustedIssuer, verifyJwt } from "./verify-jwt.ts";

/** A cached outcome, which is used only while `keySet` is in use, so that withdrawn keys are rejected. */
interface KeySetOutcome extends ExpiringOutcome {
  readonly trusted: TrustedIssuer;
  readonly keySet: object;
}

const untrustedOutcome: TokenOutcome = { kind: "unknown", reason: "not a signed JWT from a trusted issuer" };

/**
 * Creates a verifier for JSON Web Tokens from trusted issuers. Tokens from other issuers are `unknown`. Outcomes are
 * cached until the token expires or its issuer's keys change. A token that names an unknown key may wait while newer
 * keys are fetched.
 */
export function createJwtVerifier(issuers: readonly TrustedIssuer[]): TokenVerifier {
  const trustedBy = new Map<unknown, TrustedIssuer>(issuers.map((trusted) => [trusted.issuer, trusted]));
  const cache = new OutcomeCache<KeySetOutcome>();

  function verify(token: PresentedToken): TokenOutcome | Promise<TokenOutcome> {
    const cached = cache.get(token.digest, Date.now());
    if (cached !== undefined && cached.trusted.keys.current === cached.keySet) return cached.outcome;
    const trusted = trustedBy.get(issuerOf(token.text));
    return trusted === undefined
      ? untrustedOutcome
      : cache.verifyOnce(token.digest, () => verifyUncached(token, trusted));
  }

  async function verifyUncached({ text, digest }: PresentedToken, trusted: TrustedIssuer): Promise<TokenOutcome> {
    // Read before the verification, so that the outcome has the old key set, and is never used, if the set changes.
    const keySet = trusted.keys.current;
    const verified = await verifyJwt(text, trusted);
    if (keySet !== undefined) cache.set(digest, { ...verified, trusted, keySet });
    return verified.outcome;
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

// JWS compact serialisation (RFC 7515 §7.1). Excludes encrypted tokens (five parts) and unsigned tokens (empty third).
const compactJws = /^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$/;

/** Returns a signed JWT's `iss`. The claim is not verified, so use it only to select the keys. */
function issuerOf(text: string): unknown {
  if (!compactJws.test(text)) return undefined;
  try {
    return decodeJwt(text).iss;
  } catch {
    return undefined;
  }
}
