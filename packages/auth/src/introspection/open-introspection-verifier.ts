import { type OperatorLog, notParsed, parsed, type ParseResult, watchFile, withoutLineEnd } from "../inputs/index.ts";
import { withoutQuery } from "../fetch-text.ts";
import { parseProviderUrl } from "../provider-url.ts";
import type { TokenVerifier } from "../token-verifier.ts";
import { createIntrospectionVerifier } from "./introspection-verifier.ts";

/** The configuration of an introspection endpoint. */
export interface IntrospectionSource {
  readonly url: string;
  readonly clientId: string;
  /** The file with the client secret, which is watched; a line break after the secret is ignored. */
  readonly clientSecretFile: string;
  /** `aud` must contain one of these; not checked when left out. */
  readonly audiences?: readonly string[] | undefined;
  /** Whether the token's own scopes limit what it may be used for. */
  readonly demandScopes?: boolean | undefined;
  /** How long one request may take, in milliseconds; 5,000 when left out. */
  readonly timeoutMs?: number | undefined;
}

/** The default for `timeoutMs`: a call that waits for the endpoint should not outlast the patience of its client. */
export const introspectionTimeoutMs = 5_000;

/** The longest secret that is read, in bytes. */
const secretLimitBytes = 4 * 1024;

/** Opens a verifier that asks the endpoint about opaque tokens, or returns what is wrong with the configuration. */
export async function openIntrospectionVerifier(
  source: IntrospectionSource,
  log: OperatorLog,
): Promise<ParseResult<TokenVerifier>> {
  const { audiences, clientId, clientSecretFile } = source;
  const url = parseProviderUrl(source.url);
  if (url.kind === "problems") return url;
  if (clientId === "") return notParsed(`the introspection endpoint ${withoutQuery(url.value)} requires a client id`);
  let clientSecret = "";
  const file = await watchFile({
    paths: [clientSecretFile],
    what: "client secret",
    limitBytes: secretLimitBytes,
    log,
    take(text) {
      const secret = withoutLineEnd(text);
      if (secret === "") return notParsed("the secret is empty");
      clientSecret = secret;
      return parsed({});
    },
  });
  if (file.kind === "problems") return file;
  const demandScopes = source.demandScopes === true;
  const timeoutMs = source.timeoutMs ?? introspectionTimeoutMs;
  const verifier = createIntrospectionVerifier(
    { url: url.value, clientId, clientSecret: () => clientSecret, audiences, demandScopes, timeoutMs },
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
