import { type OperatorLog, parsed, type ParseResult, watchFile } from "./inputs/index.ts";
import { createStaticTokenVerifier } from "./static-token.ts";
import type { ScopeProblem } from "./token-columns.ts";
import { parseTokenHashes } from "./token-hashes.ts";
import { tokenHashesFileLimitBytes } from "./token-hashes-file.ts";
import type { TokenVerifier } from "./token-verifier.ts";

/** What is known of the tokens that are issued here. */
interface OwnTokens {
  /** Returns what is wrong with a well-formed scope in the file. */
  readonly scopeProblem?: ScopeProblem | undefined;
  /** As in {@link createStaticTokenVerifier}. */
  readonly tokenPrefix?: string | undefined;
}

/**
 * Opens a verifier over a file of token hashes and watches the file: an added line works, and a deleted one stops
 * working, within a second.
 *
 * Returns the problems of a file that is bad at the start. If it turns bad later, that is logged and the old tokens
 * stay valid.
 */
export async function openTokenHashes(
  path: string,
  { scopeProblem, tokenPrefix }: OwnTokens,
  log: OperatorLog,
): Promise<ParseResult<TokenVerifier>> {
  const verifier = createStaticTokenVerifier([], tokenPrefix);
  const file = await watchFile({
    paths: [path],
    what: "file of token hashes",
    limitBytes: tokenHashesFileLimitBytes,
    log,
    take(text = "") {
      const tokens = parseTokenHashes(text, scopeProblem);
      if (tokens.kind === "problems") return tokens;
      // No outcome is cached anywhere else: a token is gone together with its line.
      verifier.replace(tokens.value);
      return parsed({ tokens: tokens.value.length });
    },
  });
  if (file.kind === "problems") return file;
  return parsed({
    ...verifier,
    get fileReloads() {
      return [file.value.lastReload];
    },
    reload: () => file.value.reload(),
    close: () => file.value.close(),
  });
}
