import { arrayOf, integerBetween, type OptionNames, refuseUnknownOptions, required } from "@protoport/gateway/options";
import { type OperatorLog, parsed, type ParseResult, problemsOf, watchFile, withProblems } from "./inputs/index.ts";
import { type IntrospectionSource, openIntrospectionVerifier } from "./introspection/open-introspection-verifier.ts";
import type { KeyTiming } from "./jwt/fetched-keys.ts";
import type { JwtSource } from "./jwt/open-jwt-verifier.ts";
import { createStaticTokenVerifier, type StaticToken } from "./static-token.ts";
import type { ScopeProblem } from "./token-columns.ts";
import { tokenHashesFileLimitBytes } from "./token-hashes-file.ts";
import { parseTokenHashes } from "./token-hashes.ts";
import { createVerifierChain, type TokenVerifier } from "./token-verifier.ts";

/** The sources of valid tokens. */
export interface TokenSources {
  /** Tokens defined in code. */
  readonly tokens?: readonly StaticToken[] | undefined;
  /** The path to a watched file of token hashes. */
  readonly tokenHashesFile?: string | undefined;
  /**
   * Returns why a well-formed scope in `tokenHashesFile` is rejected, or `undefined` to accept the scope. By default,
   * every well-formed scope is accepted.
   */
  readonly scopeProblem?: ScopeProblem | undefined;
  /**
   * The prefix of static tokens. A mistyped token with this prefix is rejected, and never sent to an introspection
   * endpoint.
   */
  readonly tokenPrefix?: string | undefined;
  /** JSON Web Token issuers. */
  readonly jwt?: readonly JwtSource[] | undefined;
  /** An introspection endpoint for the tokens that no other source recognises. */
  readonly introspection?: IntrospectionSource | undefined;
  /**
   * The sources' names, such as the names of their settings. Each problem starts with its source's name. By default,
   * problems do not name the source.
   */
  readonly names?: SourceNames | undefined;
}

/** The sources' names, for problems that operators read. */
export type SourceNames = Readonly<Partial<Record<"tokenHashesFile" | "jwt" | "introspection", string>>>;

const timerCheck = integerBetween(1, 2 ** 31 - 1);

const keyTimingNames: OptionNames<Partial<KeyTiming>> = {
  refreshMs: timerCheck,
  usableMs: integerBetween(0, Number.POSITIVE_INFINITY),
  unknownKeyGapMs: integerBetween(0, Number.POSITIVE_INFINITY),
  coolDownMs: integerBetween(0, Number.POSITIVE_INFINITY),
  fetchMs: timerCheck,
  backOffMs: timerCheck,
  maxBackOffMs: timerCheck,
};

const introspectionSourceNames: OptionNames<IntrospectionSource> = {
  url: required,
  clientId: required,
  clientSecretFile: required,
  audiences: true,
  subjectClaim: true,
  enforceScopes: true,
  timeoutMs: timerCheck,
};

const jwtSourceNames: OptionNames<JwtSource> = {
  issuer: required,
  audiences: required,
  audienceClaim: true,
  keysUrl: true,
  keysFile: true,
  algorithms: true,
  type: true,
  enforceScopes: true,
  scopeClaims: true,
  timing: keyTimingNames,
};

const tokenSourcesNames: OptionNames<TokenSources> = {
  tokens: true,
  tokenHashesFile: true,
  scopeProblem: true,
  tokenPrefix: true,
  jwt: arrayOf(jwtSourceNames),
  introspection: introspectionSourceNames,
  names: { tokenHashesFile: true, jwt: true, introspection: true },
};

/**
 * Opens a verifier for all configured sources, or returns all their problems. The verifier tries the cheapest source
 * first. The caller closes the verifier, and calls `reload` on SIGHUP. Rejects with a TypeError for unknown options.
 */
export async function openTokenVerifier(sources: TokenSources, log: OperatorLog): Promise<ParseResult<TokenVerifier>> {
  refuseUnknownOptions(sources, tokenSourcesNames, "openTokenVerifier");
  const opened = await Promise.all(openEach(sources, log));
  const verifiers = opened.flatMap((verifier) => (verifier.kind === "value" ? [verifier.value] : []));
  const problems = problemsOf(opened);
  const verifier = createVerifierChain(verifiers);
  if (problems.length === 0) return parsed(verifier);
  verifier.close?.();
  return withProblems(...problems);
}

function* openEach(sources: TokenSources, log: OperatorLog): Iterable<Promise<ParseResult<TokenVerifier>>> {
  const { tokens, tokenHashesFile, tokenPrefix, jwt, introspection, names = {} } = sources;
  if (tokens !== undefined) yield Promise.resolve(parsed(createStaticTokenVerifier(tokens, tokenPrefix)));
  if (tokenHashesFile !== undefined)
    yield withName(names.tokenHashesFile, openTokenHashes(tokenHashesFile, sources, log));
  if (jwt !== undefined) yield withName(names.jwt, openJwt(jwt, log));
  if (introspection !== undefined) yield withName(names.introspection, openIntrospectionVerifier(introspection, log));
}

async function withName<T>(name: string | undefined, opening: Promise<ParseResult<T>>): Promise<ParseResult<T>> {
  const opened = await opening;
  if (name === undefined || opened.kind === "value") return opened;
  return withProblems(...opened.problems.map((problem) => `${name}: ${problem}`));
}

async function openJwt(issuers: readonly JwtSource[], log: OperatorLog): Promise<ParseResult<TokenVerifier>> {
  // jose is imported on demand, because loading it takes 40 ms, which servers without JWTs do not need.
  const { openJwtVerifier } = await import("./jwt/open-jwt-verifier.ts").catch(explainMissingJose);
  return await openJwtVerifier(issuers, log);
}

/** Throws an error that names the package to install if jose, an optional peer, is missing. */
function explainMissingJose(reason: unknown): never {
  const isMissing = reason instanceof Error && /^Cannot find (?:module|package) 'jose'/.test(reason.message);
  throw isMissing ? new Error("verifying JWTs requires jose: npm install jose@^6.2.17", { cause: reason }) : reason;
}

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
