import type { AuthLog } from "./auth-log.ts";
import { openIntrospectionVerifier, type IntrospectionSource } from "./introspection/open-introspection-verifier.ts";
import type { JwtSource } from "./jwt/open-jwt-verifier.ts";
import { openTokenHashes } from "./live-token-hashes.ts";
import { parsed, unparsed, type Parsed } from "./parsed.ts";
import type { StaticToken } from "./static-token.ts";
import { staticTokens } from "./static-tokens.ts";
import { firstKnowing, type TokenVerifier } from "./token-verifier.ts";

/** Who vouches for tokens. */
export interface TokenSources {
  /** Tokens that the configuration itself gives. */
  readonly tokens?: readonly StaticToken[] | undefined;
  /** The path of a file of token hashes, which is followed. */
  readonly tokenHashesFile?: string | undefined;
  /** Issuers of JSON Web Tokens. */
  readonly jwt?: readonly JwtSource[] | undefined;
  /** An endpoint that is asked about every other token. */
  readonly introspection?: IntrospectionSource | undefined;
}

/**
 * Opens a verifier over every source that is configured, or says all that is wrong with them.
 *
 * The verifier asks the cheapest source first. The caller closes it, and lets it `reload` on SIGHUP.
 */
export async function openTokenVerifier(sources: TokenSources, log: AuthLog): Promise<Parsed<TokenVerifier>> {
  const opened = await Promise.all(openEach(sources, log));
  const verifiers = opened.flatMap((verifier) => (verifier.kind === "value" ? [verifier.value] : []));
  const problems = opened.flatMap((verifier) => (verifier.kind === "problems" ? verifier.problems : []));
  const verifier = firstKnowing(verifiers);
  if (problems.length === 0) return parsed(verifier);
  verifier.close?.();
  return unparsed(...problems);
}

function* openEach(sources: TokenSources, log: AuthLog): Iterable<Promise<Parsed<TokenVerifier>>> {
  const { tokens, tokenHashesFile, jwt, introspection } = sources;
  if (tokens !== undefined) yield Promise.resolve(parsed(staticTokens(tokens)));
  if (tokenHashesFile !== undefined) yield openTokenHashes(tokenHashesFile, log);
  if (jwt !== undefined) yield openJwt(jwt, log);
  if (introspection !== undefined) yield openIntrospectionVerifier(introspection, log);
}

async function openJwt(issuers: readonly JwtSource[], log: AuthLog): Promise<Parsed<TokenVerifier>> {
  // jose takes 40 ms to load, which a server with tokens of its own need not wait for.
  const { openJwtVerifier } = await import("./jwt/open-jwt-verifier.ts");
  return await openJwtVerifier(issuers, log);
}
