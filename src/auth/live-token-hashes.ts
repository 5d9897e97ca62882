import type { AuthLog } from "./auth-log.ts";
import { parsed, type Parsed } from "./parsed.ts";
import { indexStaticTokens, type StaticTokenLookup } from "./static-token.ts";
import { parseTokenHashes } from "./token-hashes.ts";
import { tokenHashesFileLimitBytes } from "./token-hashes-file.ts";
import type { TokenVerifier } from "./token-verifier.ts";
import { watchFile } from "./watched-file.ts";

/**
 * Opens a verifier over a file of token hashes that follows the file: a line that is added works, and
 * one that is deleted stops working, within a second.
 *
 * A file that is bad at the start is the problem returned; one that turns bad later is logged, and the old set stays.
 */
export async function openTokenHashes(path: string, log: AuthLog): Promise<Parsed<TokenVerifier>> {
  let lookUp: StaticTokenLookup = indexStaticTokens([]);
  const file = await watchFile({
    path,
    what: "file of token hashes",
    limitBytes: tokenHashesFileLimitBytes,
    log,
    take(text) {
      const tokens = parseTokenHashes(text);
      if (tokens.kind === "problems") return tokens;
      // Nothing of a token is cached anywhere else: with its line it is gone.
      lookUp = indexStaticTokens(tokens.value);
      return parsed({ tokens: tokens.value.length });
    },
  });
  if (file.kind === "problems") return file;
  return parsed({
    verify: ({ digest }) => lookUp(digest),
    reload: () => file.value.reload(),
    close: () => file.value.close(),
  });
}
