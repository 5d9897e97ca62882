import { type OperatorLog, parsed, type ParseResult, watchFile } from "./inputs/index.ts";
import { createStaticTokenVerifier } from "./static-token.ts";
import type { ScopeProblem } from "./token-columns.ts";
import { parseTokenHashes } from "./token-hashes.ts";
import { tokenHashesFileLimitBytes } from "./token-hashes-file.ts";
import type { TokenVerifier } from "./token-verifier.ts";

interface TokenHashesOptions {
  /** Returns why a well-formed scope in the file is rejected, or `undefined` to accept the scope. */
  readonly scopeProblem?: ScopeProblem | undefined;
  /** The parameter `tokenPrefix` for {@link createStaticTokenVerifier}. */
  readonly tokenPrefix?: string | undefined;
}

/**
 * Opens a verifier for a file of token hashes, and watches the file. Added and removed lines take effect within a
 * second. Returns the problems if the first content is invalid. Later problems are logged, and the previous tokens stay
 * valid.
 */
export async function openTokenHashes(
  path: string,
  { scopeProblem, tokenPrefix }: TokenHashesOptions,
  log: OperatorLog,
): Promise<ParseResult<TokenVerifier>> {
  const verifier = createStaticTokenVerifier([], tokenPrefix);
  const file = await watchFile({
    paths: [path],
    what: "file of token hashes",
    limitBytes: tokenHashesFileLimitBytes,
    log,
    apply(text = "") {
      const tokens = parseTokenHashes(text, scopeProblem);
      if (tokens.kind === "problems") return tokens;
      // No cache stores outcomes for tokens in the file, so removing a line revokes its token immediately.
      verifier.replace(tokens.value);
      // An empty file is valid after the last token was revoked. A file truncated by mistake is empty too, so warn.
      if (tokens.value.length === 0)
        log.warn({ path }, "file of token hashes is empty; none of its tokens is accepted");
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
