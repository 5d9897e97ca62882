import {
  type OperatorLog,
  withProblems,
  parsed,
  type ParseResult,
  watchFile,
  withoutLineEnd,
} from "../inputs/index.ts";
import { parseProviderUrl, withoutQuery } from "../fetch-text.ts";
import type { TokenVerifier } from "../token-verifier.ts";
import { createIntrospectionVerifier } from "./introspection-verifier.ts";

/** An introspection endpoint's configuration. */
export interface IntrospectionSource {
  readonly url: string;
  readonly clientId: string;
  /** The path to the watched file with the client secret. A line break after the secret is ignored. */
  readonly clientSecretFile: string;
  /** `aud` must contain one of these audiences. If omitted, `aud` is not checked. */
  readonly audiences?: readonly string[] | undefined;
  /**
   * The member that identifies the caller if a response has no `sub`, such as `client_id` or `username`. Choose a
   * member whose values never equal a `sub`, because equal values identify the same caller. By default, tokens without
   * `sub` are rejected.
   */
  readonly subjectClaim?: string | undefined;
  /** Whether a token is limited to its scopes. By default, a token has every scope. */
  readonly enforceScopes?: boolean | undefined;
  /** Timeout for one request, in milliseconds. The default is 5,000. */
  readonly timeoutMs?: number | undefined;
}

/** Default `timeoutMs`. A call waits for the endpoint's response, and should not wait longer than its client does. */
export const introspectionTimeoutMs = 5_000;

/** Maximum size of the secret file, in bytes. */
const secretLimitBytes = 4 * 1024;

/** Opens a verifier that introspects tokens, or returns the configuration's problems. */
export async function openIntrospectionVerifier(
  source: IntrospectionSource,
  log: OperatorLog,
): Promise<ParseResult<TokenVerifier>> {
  const { audiences, subjectClaim, clientId, clientSecretFile } = source;
  const url = parseProviderUrl(source.url);
  if (url.kind === "problems") return url;
  if (clientId === "")
    return withProblems(`the introspection endpoint ${withoutQuery(url.value)} requires a client id`);
  let clientSecret = "";
  const file = await watchFile({
    paths: [clientSecretFile],
    what: "client secret",
    limitBytes: secretLimitBytes,
    log,
    apply(text) {
      const secret = withoutLineEnd(text);
      if (secret === "") return withProblems("the secret is empty");
      clientSecret = secret;
      return parsed({});
    },
  });
  if (file.kind === "problems") return file;
  const enforceScopes = source.enforceScopes === true;
  const timeoutMs = source.timeoutMs ?? introspectionTimeoutMs;
  const verifier = createIntrospectionVerifier(
    { url: url.value, clientId, clientSecret: () => clientSecret, audiences, subjectClaim, enforceScopes, timeoutMs },
    log,
  );
  return parsed({
    verify: (token) => verifier.verify(token),
    get problem() {
      return verifier.problem;
    },
    get fileReloads() {
      return [file.value.lastReload];
    },
    reload: () => file.value.reload(),
    close() {
      file.value.close();
      verifier.close?.();
    },
  });
}
