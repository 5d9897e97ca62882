import type { AuthLog } from "../auth-log.ts";
import { parsed, unparsed, type Parsed } from "../parsed.ts";
import { parseProviderUrl } from "../provider-url.ts";
import type { TokenVerifier } from "../token-verifier.ts";
import { openFetchedKeys, type KeyTiming } from "./fetched-keys.ts";
import { openFileKeys } from "./file-keys.ts";
import type { IssuerKeys } from "./issuer-keys.ts";
import { defaultJwtAlgorithms, type JwtAlgorithm } from "./jwt-algorithm.ts";
import { jwtVerifier, type TrustedIssuer } from "./jwt-verifier.ts";
import { keysAt, keysByDiscovery } from "./key-document.ts";

/** An issuer of JSON Web Tokens, as it is configured. */
export interface JwtSource {
  /** What `iss` must be, to the letter. */
  readonly issuer: string;
  /** What `aud` must name one of; not empty, or a token that the issuer made for any other service would do. */
  readonly audiences: readonly string[];
  /** Where the issuer's public keys are: at a URL, in a file that is followed, or where its metadata says (the default). */
  readonly keys?: { readonly url: string } | { readonly file: string } | undefined;
  /** The signature algorithms that are taken; RS256, PS256, ES256 and EdDSA when left out. */
  readonly algorithms?: readonly JwtAlgorithm[] | undefined;
  /** Whether `typ` must be `at+jwt` (RFC 9068). */
  readonly demandAccessTokenType?: boolean | undefined;
  /** Whether the token's own scopes decide what it may be used for. */
  readonly demandScopes?: boolean | undefined;
  /** The claims that hold those scopes, each a text parted by spaces or a list of texts; `scope` and `scp` when left out. */
  readonly scopeClaims?: readonly string[] | undefined;
  /** When keys are fetched, where a provider needs it unlike the others. */
  readonly timing?: Partial<KeyTiming> | undefined;
}

/** RFC 8693 §4.2, and the name that Entra and Okta give it. */
const defaultScopeClaims: readonly string[] = ["scope", "scp"];

/**
 * Opens a verifier of the tokens of these issuers, or says everything that is wrong with what is configured.
 *
 * A provider that cannot be reached is no such thing: the verifier is there, answers `unavailable` and tells its `problem` until
 * the first keys come.
 */
export async function openJwtVerifier(sources: readonly JwtSource[], log: AuthLog): Promise<Parsed<TokenVerifier>> {
  const opened = await Promise.all(sources.map((source) => openIssuer(source, log)));
  const issuers = opened.flatMap((issuer) => (issuer.kind === "value" ? [issuer.value] : []));
  const problems = [
    ...opened.flatMap((issuer) => (issuer.kind === "problems" ? issuer.problems : [])),
    ...repeatedIssuers(sources),
  ];
  if (problems.length === 0) return parsed(jwtVerifier(issuers));
  for (const { keys } of issuers) keys.close();
  return unparsed(...problems);
}

async function openIssuer(source: JwtSource, log: AuthLog): Promise<Parsed<TrustedIssuer>> {
  const { issuer, audiences } = source;
  if (audiences.length === 0 || audiences.includes("")) return unparsed(`the issuer ${issuer} needs an audience`);
  const algorithms = source.algorithms ?? defaultJwtAlgorithms;
  const keys = await openKeys(source, algorithms, log);
  if (keys.kind === "problems") return keys;
  return parsed({
    issuer,
    audiences,
    algorithms,
    demandAccessTokenType: source.demandAccessTokenType === true,
    scopeClaims: source.demandScopes === true ? (source.scopeClaims ?? defaultScopeClaims) : undefined,
    keys: keys.value,
  });
}

async function openKeys(
  { issuer, keys, timing }: JwtSource,
  algorithms: readonly JwtAlgorithm[],
  log: AuthLog,
): Promise<Parsed<IssuerKeys>> {
  if (keys !== undefined && "file" in keys) return await openFileKeys(keys.file, algorithms, log);
  const url = parseProviderUrl(keys === undefined ? issuer : keys.url);
  if (url.kind === "problems") return url;
  const fetchDocument = keys === undefined ? keysByDiscovery(issuer) : keysAt(url.value);
  return parsed(await openFetchedKeys({ issuer, algorithms, fetchDocument, log, timing }));
}

function repeatedIssuers(sources: readonly JwtSource[]): readonly string[] {
  const names = sources.map(({ issuer }) => issuer);
  return names.flatMap((name, index) =>
    names.indexOf(name) < index ? [`the issuer ${name} is configured twice`] : [],
  );
}
