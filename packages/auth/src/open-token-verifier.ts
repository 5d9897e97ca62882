import { type OptionNames, refuseUnknownOptions, required } from "@plantstore/gateway/options";
import { type OperatorLog, notParsed, parsed, type ParseResult, problemsOf } from "./inputs/index.ts";
import { openIntrospectionVerifier, type IntrospectionSource } from "./introspection/open-introspection-verifier.ts";
import type { KeyTiming } from "./jwt/fetched-keys.ts";
import type { JwtSource } from "./jwt/open-jwt-verifier.ts";
import { openTokenHashes } from "./open-token-hashes.ts";
import type { ScopeProblem } from "./token-columns.ts";
import { type StaticToken, createStaticTokenVerifier } from "./static-token.ts";
import { createVerifierChain, type TokenVerifier } from "./token-verifier.ts";

/** The sources of valid tokens. */
export interface TokenSources {
  /** Tokens that are given in the configuration itself. */
  readonly tokens?: readonly StaticToken[] | undefined;
  /** The path of a file of token hashes, which is watched. */
  readonly tokenHashesFile?: string | undefined;
  /** Returns what is wrong with a well-formed scope in that file; by default nothing is. */
  readonly scopeProblem?: ScopeProblem | undefined;
  /** The prefix of the tokens that are issued here; none of them is sent elsewhere if it was mistyped. */
  readonly tokenPrefix?: string | undefined;
  /** Issuers of JSON Web Tokens. */
  readonly jwt?: readonly JwtSource[] | undefined;
  /** An endpoint that is asked about all other tokens. */
  readonly introspection?: IntrospectionSource | undefined;
  /** What an operator calls a source, such as its setting: its problems at the start begin with that. Default: nothing. */
  readonly names?: SourceNames | undefined;
}

/** What an operator calls the sources that are opened. */
export type SourceNames = Readonly<Partial<Record<"tokenHashesFile" | "jwt" | "introspection", string>>>;

const keyTimingNames: OptionNames<Partial<KeyTiming>> = {
  refreshMs: true,
  usableMs: true,
  coolDownMs: true,
  fetchMs: true,
  backOffMs: true,
  backOffMaxMs: true,
};

const introspectionSourceNames: OptionNames<IntrospectionSource> = {
  url: required,
  clientId: required,
  clientSecretFile: required,
  audiences: true,
  demandScopes: true,
  timeoutMs: true,
};

const tokenSourcesNames: OptionNames<TokenSources> = {
  tokens: true,
  tokenHashesFile: true,
  scopeProblem: true,
  tokenPrefix: true,
  jwt: true,
  introspection: introspectionSourceNames,
  names: { tokenHashesFile: true, jwt: true, introspection: true },
};

const jwtSourceNames: OptionNames<JwtSource> = {
  issuer: required,
  audiences: required,
  keys: { url: true, file: true },
  algorithms: true,
  demandAccessTokenType: true,
  demandScopes: true,
  scopeClaims: true,
  timing: keyTimingNames,
};

/**
 * Opens a verifier over every configured source, or returns everything that is wrong with them.
 *
 * The verifier tries the cheapest source first. The caller closes it, and calls `reload` on SIGHUP.
 * Rejects with a TypeError for sources, or options of theirs, that do not exist.
 */
export async function openTokenVerifier(sources: TokenSources, log: OperatorLog): Promise<ParseResult<TokenVerifier>> {
  refuseUnknownOptions(sources, tokenSourcesNames, "openTokenVerifier");
  for (const [at, source] of sources.jwt?.entries() ?? []) {
    refuseUnknownOptions(source, jwtSourceNames, `jwt[${at}] of openTokenVerifier`);
  }
  const opened = await Promise.all(openEach(sources, log));
  const verifiers = opened.flatMap((verifier) => (verifier.kind === "value" ? [verifier.value] : []));
  const problems = problemsOf(opened);
  const verifier = createVerifierChain(verifiers);
  if (problems.length === 0) return parsed(verifier);
  verifier.close?.();
  return notParsed(...problems);
}

function* openEach(sources: TokenSources, log: OperatorLog): Iterable<Promise<ParseResult<TokenVerifier>>> {
  const { tokens, tokenHashesFile, tokenPrefix, jwt, introspection, names = {} } = sources;
  if (tokens !== undefined) yield Promise.resolve(parsed(createStaticTokenVerifier(tokens, tokenPrefix)));
  if (tokenHashesFile !== undefined) yield named(names.tokenHashesFile, openTokenHashes(tokenHashesFile, sources, log));
  if (jwt !== undefined) yield named(names.jwt, openJwt(jwt, log));
  if (introspection !== undefined) yield named(names.introspection, openIntrospectionVerifier(introspection, log));
}

async function named<T>(name: string | undefined, opening: Promise<ParseResult<T>>): Promise<ParseResult<T>> {
  const opened = await opening;
  if (name === undefined || opened.kind === "value") return opened;
  return notParsed(...opened.problems.map((problem) => `${name}: ${problem}`));
}

async function openJwt(issuers: readonly JwtSource[], log: OperatorLog): Promise<ParseResult<TokenVerifier>> {
  // jose takes 40 ms to load, which a server with only its own tokens should not pay.
  const { openJwtVerifier } = await import("./jwt/open-jwt-verifier.ts").catch(explainMissingJose);
  return await openJwtVerifier(issuers, log);
}

/** Says what to install if jose, an optional peer, is missing. */
function explainMissingJose(reason: unknown): never {
  const isMissing = reason instanceof Error && /^Cannot find (?:module|package) 'jose'/.test(reason.message);
  throw isMissing ? new Error("verifying JWTs requires jose: npm install jose@^6.2.17", { cause: reason }) : reason;
}
