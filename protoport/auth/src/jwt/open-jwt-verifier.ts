import { createLocalJWKSet, decodeJwt, type JSONWebKeySet } from "jose";
import { fetchText, parseProviderUrl, providerResponseLimitBytes, withoutQuery } from "../fetch-text.ts";
import { type OperatorLog, parsed, type ParseResult, problemsOf, watchFile, withProblems } from "../inputs/index.ts";
import { parseJsonObject } from "../json-object.ts";
import { type ExpiringOutcome, OutcomeCache } from "../outcome-cache.ts";
import type { PresentedToken, TokenOutcome, TokenVerifier } from "../token-verifier.ts";
import { type FetchKeyDocument, type KeyTiming, openFetchedKeys } from "./fetched-keys.ts";
import type { IssuerKeys } from "./issuer-keys.ts";
import { defaultJwtAlgorithms, type JwtAlgorithm } from "./jwt-algorithm.ts";
import { readKeySet } from "./key-set.ts";
import { type TrustedIssuer, verifyJwt } from "./verify-jwt.ts";

/** A JSON Web Token issuer's configuration. */
export interface JwtSource {
  /** The exact `iss` value. */
  readonly issuer: string;
  /** One or more audiences. `aud` must contain one of them, so that tokens for other services are rejected. */
  readonly audiences: readonly string[];
  /**
   * The claim that must contain an audience if a token has no `aud`, such as `client_id` in Amazon Cognito's access
   * tokens. By default, tokens without `aud` are rejected.
   */
  readonly audienceClaim?: string | undefined;
  /** The URL of the public keys. Without it and {@link keysFile}, the `jwks_uri` in the issuer's metadata is used. */
  readonly keysUrl?: string | undefined;
  /** The path to a watched file with the issuer's public keys. Cannot be combined with {@link keysUrl}. */
  readonly keysFile?: string | undefined;
  /** The allowed signature algorithms. Defaults to RS256, PS256, ES256 and EdDSA. */
  readonly algorithms?: readonly JwtAlgorithm[] | undefined;
  /** The required `typ`: `at+jwt` (RFC 9068), or `any`, which also accepts `JWT` and no `typ`. The default is `any`. */
  readonly type?: "at+jwt" | "any" | undefined;
  /** Whether a token is limited to its scopes. By default, a token has every scope. */
  readonly enforceScopes?: boolean | undefined;
  /** The claims that contain the scopes, as a string separated by spaces or an array. Defaults to `scope` and `scp`. */
  readonly scopeClaims?: readonly string[] | undefined;
  /** The times at which keys are fetched, for providers for which the defaults do not fit. */
  readonly timing?: Partial<KeyTiming> | undefined;
}

/** RFC 8693 §4.2 defines `scope`. Entra and Okta use `scp`. */
const defaultScopeClaims: readonly string[] = ["scope", "scp"];

/**
 * Opens a verifier for tokens from these issuers, or returns the configuration's problems. A provider that is down is
 * not a configuration problem. Until its keys arrive, the verifier returns `unavailable` and reports a `problem`.
 */
export async function openJwtVerifier(
  sources: readonly JwtSource[],
  log: OperatorLog,
): Promise<ParseResult<TokenVerifier>> {
  const opened = await Promise.all(sources.map((source) => openIssuer(source, log)));
  const issuers = opened.flatMap((issuer) => (issuer.kind === "value" ? [issuer.value] : []));
  const problems = [...problemsOf(opened), ...duplicateIssuers(sources)];
  if (problems.length === 0) return parsed(createJwtVerifier(issuers));
  for (const { keys } of issuers) keys.close();
  return withProblems(...problems);
}

async function openIssuer(source: JwtSource, log: OperatorLog): Promise<ParseResult<TrustedIssuer>> {
  const { issuer, audiences, keysUrl, keysFile } = source;
  if (audiences.length === 0 || audiences.includes(""))
    return withProblems(`the issuer ${issuer} must have at least one audience, and no empty one`);
  if (keysUrl !== undefined && keysFile !== undefined)
    return withProblems(`the issuer ${issuer} must have keysUrl or keysFile, not both`);
  const algorithms = source.algorithms ?? defaultJwtAlgorithms;
  const keys = await openKeys(source, algorithms, log);
  if (keys.kind === "problems") return keys;
  return parsed({
    issuer,
    audiences,
    audienceClaim: source.audienceClaim,
    algorithms,
    requireAccessTokenType: source.type === "at+jwt",
    scopeClaims: source.enforceScopes === true ? (source.scopeClaims ?? defaultScopeClaims) : undefined,
    keys: keys.value,
  });
}

async function openKeys(
  { issuer, keysUrl, keysFile, timing }: JwtSource,
  algorithms: readonly JwtAlgorithm[],
  log: OperatorLog,
): Promise<ParseResult<IssuerKeys>> {
  if (keysFile !== undefined) return await openFileKeys(keysFile, algorithms, log);
  const url = parseProviderUrl(keysUrl ?? issuer);
  if (url.kind === "problems") return url;
  const fetchDocument = keysUrl === undefined ? createKeyDiscovery(issuer, url.value) : createKeyFetcher(url.value);
  return parsed(await openFetchedKeys({ issuer, url: url.value, algorithms, fetchDocument, log, timing }));
}

function duplicateIssuers(sources: readonly JwtSource[]): readonly string[] {
  const names = sources.map(({ issuer }) => issuer);
  return names.flatMap((name, index) =>
    names.indexOf(name) < index ? [`the issuer ${name} is configured twice`] : [],
  );
}

/** Opens a key set in a file and watches the file. Returns the problems if the file's first content is invalid. */
async function openFileKeys(
  path: string,
  algorithms: readonly JwtAlgorithm[],
  log: OperatorLog,
): Promise<ParseResult<IssuerKeys>> {
  let current: JSONWebKeySet = { keys: [] };
  let find = createLocalJWKSet(current);
  const use = (keys: JSONWebKeySet): ParseResult<{ readonly keys: number }> => {
    current = keys;
    find = createLocalJWKSet(keys);
    return parsed({ keys: keys.keys.length });
  };
  const file = await watchFile({
    paths: [path],
    what: "key set",
    limitBytes: providerResponseLimitBytes,
    log,
    async apply(text) {
      const keys = await readKeySet(text, algorithms);
      if (keys.kind === "problems") return keys;
      return keys.value.keys.length === 0 ? withProblems("the key set is empty") : use(keys.value);
    },
  });
  if (file.kind === "problems") return file;
  return parsed({
    find: (...signature) => find(...signature),
    get current() {
      return current;
    },
    fetchedAtMs: undefined,
    retryAfterS: undefined,
    problem: undefined,
    get fileReload() {
      return file.value.lastReload;
    },
    reload: () => file.value.reload(),
    close: () => file.value.close(),
  });
}

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

/** Creates a function that fetches the key set from a URL. */
function createKeyFetcher(url: URL): FetchKeyDocument {
  return (signal) => fetchText({ url, header: { accept: "application/jwk-set+json, application/json" }, signal });
}

/**
 * Creates a function that fetches the issuer's metadata, and then the key set from the URL in the metadata. The OpenID
 * Connect Discovery 1.0 §4 URL, which nearly every provider supports, is requested before the RFC 8414 §3 URL.
 *
 * @param issuer - the value that `issuer` must have in the metadata
 * @param url - the issuer as a URL
 */
function createKeyDiscovery(issuer: string, url: URL): FetchKeyDocument {
  const path = url.pathname.replace(/\/$/, "");
  const openIdUrl = withPath(url, `${path}/.well-known/openid-configuration`);
  const oauthUrl = withPath(url, `/.well-known/oauth-authorization-server${path}`);
  return async (signal) => {
    const openId = await readMetadata(openIdUrl, issuer, signal);
    const metadata = openId.kind === "value" ? openId : await readMetadata(oauthUrl, issuer, signal);
    if (metadata.kind === "value") return await createKeyFetcher(metadata.value)(signal);
    return openId.kind === "problems" ? withProblems(...openId.problems, ...metadata.problems) : metadata;
  };
}

function withPath(url: URL, path: string): URL {
  const metadataUrl = new URL(url);
  metadataUrl.pathname = path;
  return metadataUrl;
}

async function readMetadata(url: URL, issuer: string, signal: AbortSignal): Promise<ParseResult<URL>> {
  const text = await fetchText({ url, signal });
  if (text.kind === "problems") return text;
  const document = parseJsonObject(text.value, withoutQuery(url));
  if (document.kind === "problems") return document;
  const { issuer: named, jwks_uri: keysUrl } = document.value;
  // Without this check, one issuer could impersonate another (RFC 8414 §3.3, OpenID Connect Discovery §4.3).
  if (named !== issuer) return withProblems(`${withoutQuery(url)} names a different issuer`);
  if (typeof keysUrl !== "string") return withProblems(`${withoutQuery(url)} has no "jwks_uri"`);
  return parseProviderUrl(keysUrl);
}
