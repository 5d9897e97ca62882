import { KnownOutcomes, type KnownOutcome } from "../known-outcomes.ts";
import type { PresentedToken, TokenOutcome, TokenVerifier } from "../token-verifier.ts";
import type { IssuerKeys } from "./issuer-keys.ts";
import { isJwtAlgorithm, type JwtAlgorithm } from "./jwt-algorithm.ts";
import type { KeySearch, KeySet } from "./key-set.ts";
import { readUnverifiedJwt, type UnverifiedJwt } from "./unverified-jwt.ts";
import { verifyJwt, type JwtDemands } from "./verify-jwt.ts";

/** An issuer whose tokens are taken, and which of them. */
export interface TrustedIssuer extends JwtDemands {
  readonly algorithms: readonly JwtAlgorithm[];
  /** Whether `typ` must be `at+jwt` (RFC 9068 §4); otherwise `JWT` and none at all do as well, since many providers send those. */
  readonly demandAccessTokenType: boolean;
  /** The keys of this issuer, and of no other. */
  readonly keys: IssuerKeys;
}

/** An outcome that holds as long as the set is the current one of its issuer: with its key a token is gone. */
interface ProvenOutcome extends KnownOutcome {
  readonly keys: IssuerKeys;
  readonly set: KeySet;
}

const notOurs: TokenOutcome = { kind: "unknown", reason: "not a signed JWT of a trusted issuer" };

/**
 * Returns a verifier of JSON Web Tokens that trusted issuers signed; the tokens of others are `unknown`.
 *
 * A token that was verified before is answered at once from memory, until it expires or the keys of
 * its issuer change. A new one costs a signature; one that names an unknown key may wait for newer keys.
 */
export function jwtVerifier(issuers: readonly TrustedIssuer[]): TokenVerifier {
  const trustedBy = new Map(issuers.map((trusted) => [trusted.issuer, trusted]));
  const known = new KnownOutcomes<ProvenOutcome>();

  function verify(token: PresentedToken): TokenOutcome | Promise<TokenOutcome> {
    const proven = known.get(token.digest, Date.now());
    if (proven !== undefined && proven.keys.current() === proven.set) return proven.outcome;
    const jwt = readUnverifiedJwt(token.text);
    const trusted = jwt === undefined ? undefined : trustedBy.get(jwt.issuer);
    if (jwt === undefined || trusted === undefined) return notOurs;
    return known.askOnce(token.digest, () => verifyAnew(token, jwt, trusted));
  }

  async function verifyAnew(token: PresentedToken, jwt: UnverifiedJwt, trusted: TrustedIssuer): Promise<TokenOutcome> {
    const { algorithm } = jwt;
    const { algorithms, demandAccessTokenType, keys } = trusted;
    if (!isJwtAlgorithm(algorithm) || !algorithms.includes(algorithm))
      return invalid(`"alg" is not ${algorithms.join(", ")}`);
    if (!isFitType(jwt.type, demandAccessTokenType)) return invalid('"typ" is not that of an access token');
    const { set, search } = await findKey(keys, algorithm, jwt.keyId);
    if (search.kind === "ambiguous") return invalid("the token does not say which key signed it");
    if (search.kind === "unknown-key" || set === undefined) return keyIsMissing(keys);
    const outcome = await verifyJwt(token.text, search.key, algorithm, trusted);
    known.set(token.digest, { ...outcome, keys, set });
    return outcome.outcome;
  }

  return {
    verify,
    get problem() {
      const problems = issuers.flatMap(({ keys }) => keys.problem ?? []);
      return problems.length === 0 ? undefined : problems.join("; ");
    },
    async reload() {
      await Promise.all(issuers.map(({ keys }) => keys.reload()));
    },
    close() {
      for (const { keys } of issuers) keys.close();
    },
  };
}

// `typ` is a media type whose "application/" may be left out (RFC 7515 §4.1.9). A type of its own (`logout+jwt`,
// `dpop+jwt`) says that a token is not meant for this (RFC 8725 §3.11).
function isFitType(type: string | undefined, demandAccessTokenType: boolean): boolean {
  const name = type?.toLowerCase().replace(/^application\//, "");
  if (name === "at+jwt") return true;
  return !demandAccessTokenType && (name === undefined || name === "jwt");
}

async function findKey(
  keys: IssuerKeys,
  algorithm: JwtAlgorithm,
  keyId: string | undefined,
): Promise<{ readonly set: KeySet | undefined; readonly search: KeySearch }> {
  const set = keys.current();
  const search = set?.find(algorithm, keyId);
  if (search !== undefined && search.kind !== "unknown-key") return { set, search };
  await keys.renew();
  const renewed = keys.current();
  return { set: renewed, search: renewed?.find(algorithm, keyId) ?? { kind: "unknown-key" } };
}

// Nobody may be told that a token is bad while the key that signed it may exist: it cannot be checked now.
function keyIsMissing(keys: IssuerKeys): TokenOutcome {
  const { problem, behindS } = keys;
  if (problem === undefined && behindS === undefined)
    return invalid("the token names a key that its issuer does not have");
  return {
    kind: "unavailable",
    reason: problem ?? "the token names an unknown key, and newer keys cannot be fetched",
    retryAfterS: behindS ?? 1,
  };
}

function invalid(reason: string): TokenOutcome {
  return { kind: "invalid", reason };
}
