import { OutcomeCache, type TimedOutcome } from "../outcome-cache.ts";
import type { PresentedToken, TokenOutcome, TokenVerifier } from "../token-verifier.ts";
import type { IssuerKeys } from "./issuer-keys.ts";
import { isJwtAlgorithm, type JwtAlgorithm } from "./jwt-algorithm.ts";
import type { KeySearch, KeySet } from "./key-set.ts";
import { readUnverifiedJwt, type UnverifiedJwt } from "./unverified-jwt.ts";
import { verifyJwt, type JwtDemands } from "./verify-jwt.ts";

/** An issuer whose tokens are accepted, and what they must fulfil. */
export interface TrustedIssuer extends JwtDemands {
  readonly algorithms: readonly JwtAlgorithm[];
  /**
   * Whether `typ` must be `at+jwt` (RFC 9068 §4). Otherwise `JWT` and no type are accepted too, since many providers
   * send those.
   */
  readonly demandAccessTokenType: boolean;
  readonly keys: IssuerKeys;
}

/**
 * An outcome that is valid while the set is the current one of its issuer: a token is rejected once its key is
 * withdrawn.
 */
interface ProvenOutcome extends TimedOutcome {
  readonly keys: IssuerKeys;
  readonly set: KeySet;
}

const notOurs: TokenOutcome = { kind: "unknown", reason: "not a signed JWT of a trusted issuer" };

/**
 * Creates a verifier of JSON Web Tokens that trusted issuers have signed; tokens of other issuers are `unknown`.
 *
 * A known token is answered at once from the cache, until it expires or the keys of its issuer change. A new one costs
 * a signature check; one that names an unknown key may wait for newer keys.
 */
export function createJwtVerifier(issuers: readonly TrustedIssuer[]): TokenVerifier {
  const trustedBy = new Map(issuers.map((trusted) => [trusted.issuer, trusted]));
  const known = new OutcomeCache<ProvenOutcome>();

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
    get keysFetched() {
      return issuers.flatMap(({ issuer, keys: { fetchedAtMs } }) =>
        fetchedAtMs === undefined ? [] : [{ issuer, atMs: fetchedAtMs }],
      );
    },
    async reload() {
      await Promise.all(issuers.map(({ keys }) => keys.reload()));
    },
    close() {
      for (const { keys } of issuers) keys.close();
    },
  };
}

// `typ` is a media type whose "application/" may be omitted (RFC 7515 §4.1.9). Another type (`logout+jwt`, `dpop+jwt`)
// means that the token is not an access token (RFC 8725 §3.11).
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

// While the key that signed a token may exist, the token is not called bad: it cannot be checked right now.
function keyIsMissing(keys: IssuerKeys): TokenOutcome {
  const { problem, retryAfterS } = keys;
  if (problem === undefined && retryAfterS === undefined)
    return invalid("the token names a key that its issuer does not have");
  return {
    kind: "unavailable",
    reason: problem ?? "the token names an unknown key, and newer keys cannot be fetched",
    retryAfterS: retryAfterS ?? 1,
  };
}

function invalid(reason: string): TokenOutcome {
  return { kind: "invalid", reason };
}
