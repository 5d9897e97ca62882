import type { AuthLog } from "../auth-log.ts";
import { placeOf } from "../fetch-text.ts";
import { parsed, unparsed, type Parsed } from "../parsed.ts";
import { parseProviderUrl } from "../provider-url.ts";
import type { TokenVerifier } from "../token-verifier.ts";
import { watchFile } from "../watched-file.ts";
import { introspectionVerifier } from "./introspection-verifier.ts";

/** An introspection endpoint, as it is configured. */
export interface IntrospectionSource {
  readonly url: string;
  readonly clientId: string;
  /** The file that holds the client's secret, which is followed; a line end after the secret is no part of it. */
  readonly clientSecretFile: string;
  /** What `aud` must name one of; not asked for when left out. */
  readonly audiences?: readonly string[] | undefined;
  /** Whether the token's own scopes decide what it may be used for. */
  readonly demandScopes?: boolean | undefined;
  /** How long one question may take, in milliseconds; 5,000 when left out. */
  readonly timeoutMs?: number | undefined;
}

/** A call that waits for an answer is not to outlast its client's patience. */
const timeoutMsDefault = 5_000;

/** The longest secret that is read, in bytes. */
const secretLimitBytes = 4 * 1024;

/** Opens a verifier of opaque tokens that asks the endpoint, or says what is wrong with what is configured. */
export async function openIntrospectionVerifier(
  source: IntrospectionSource,
  log: AuthLog,
): Promise<Parsed<TokenVerifier>> {
  const { audiences, clientId, clientSecretFile } = source;
  const url = parseProviderUrl(source.url);
  if (url.kind === "problems") return url;
  if (clientId === "") return unparsed(`the introspection endpoint ${placeOf(url.value)} needs a client id`);
  let clientSecret = "";
  const file = await watchFile({
    path: clientSecretFile,
    what: "client secret",
    limitBytes: secretLimitBytes,
    log,
    take(text) {
      const secret = text.replace(/\r?\n$/, "");
      if (secret === "") return unparsed("there is no secret in it");
      clientSecret = secret;
      return parsed({});
    },
  });
  if (file.kind === "problems") return file;
  const demandScopes = source.demandScopes === true;
  const timeoutMs = source.timeoutMs ?? timeoutMsDefault;
  const verifier = introspectionVerifier(
    { url: url.value, clientId, clientSecret: () => clientSecret, audiences, demandScopes, timeoutMs },
    log,
  );
  return parsed({
    verify: (token) => verifier.verify(token),
    get problem() {
      return verifier.problem;
    },
    reload: () => file.value.reload(),
    close() {
      file.value.close();
      verifier.close?.();
    },
  });
}
