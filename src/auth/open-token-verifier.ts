import type { AuthLog } from "./auth-log.ts";
import { openTokenHashes } from "./live-token-hashes.ts";
import { parsed, type Parsed } from "./parsed.ts";
import type { StaticToken } from "./static-token.ts";
import { staticTokens } from "./static-tokens.ts";
import { firstKnowing, type TokenVerifier } from "./token-verifier.ts";

/** Where good tokens are known. */
export interface TokenSources {
  /** Tokens that the configuration itself gives. */
  readonly tokens?: readonly StaticToken[] | undefined;
  /** The path of a file of token hashes. */
  readonly tokenHashesFile?: string | undefined;
}

/**
 * Opens a verifier over every source that is configured, or says what is wrong with them.
 *
 * The caller closes it.
 */
export async function openTokenVerifier(sources: TokenSources, log: AuthLog): Promise<Parsed<TokenVerifier>> {
  const verifiers: TokenVerifier[] = [];
  if (sources.tokens !== undefined) verifiers.push(staticTokens(sources.tokens));
  if (sources.tokenHashesFile !== undefined) {
    const tokens = await openTokenHashes(sources.tokenHashesFile, log);
    if (tokens.kind === "problems") return tokens;
    verifiers.push(tokens.value);
  }
  return parsed(firstKnowing(verifiers));
}
