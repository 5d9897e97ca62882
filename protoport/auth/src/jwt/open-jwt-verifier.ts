import { type OperatorLog, withProblems, parsed, type ParseResult, problemsOf } from "../inputs/index.ts";
import { parseProviderUrl } from "../provider-url.ts";
import type { TokenVerifier } from "../token-verifier.ts";
import { openFetchedKeys, type KeyTiming } from "./fetched-keys.ts";
import { openFileKeys } from "./file-keys.ts";
import type { IssuerKeys } from "./issuer-keys.ts";
import { defaultJwtAlgorithms, type JwtAlgorithm } from "./jwt-algorithm.ts";
import { createJwtVerifier } from "./jwt-verifier.ts";
import { createKeyFetcher, createKeyDiscovery } from "./key-document.ts";
import type { TrustedIssuer } from "./verify-jwt.ts";

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
