import { fetchText, withoutQuery } from "../fetch-text.ts";
import { parseJsonObject } from "../json-object.ts";
import { withProblems, type ParseResult } from "../inputs/index.ts";
import { parseProviderUrl } from "../provider-url.ts";

/** Fetches a JWK Set as a string. Never rejects. */
export type FetchKeyDocument = (signal: AbortSignal) => Promise<ParseResult<string>>;

/** Creates a function that fetches the key set from a URL. */
export function createKeyFetcher(url: URL): FetchKeyDocument {
  return (signal) => fetchText({ url, header: { accept: "application/jwk-set+json, application/json" }, signal });
}

/**
 * Creates a function that fetches the issuer's metadata, and then the key set from the URL in the metadata. The OpenID
 * Connect Discovery 1.0 §4 URL, which nearly every provider supports, is requested before the RFC 8414 §3 URL.
 *
 * @param issuer - the value that `issuer` must have in the metadata
 * @param url - the issuer as a URL
 */
export function createKeyDiscovery(issuer: string, url: URL): FetchKeyDocument {
  const path = url.pathname.replace(/\/$/, "");
  const openIdUrl = withPath(url, `${path}/.well-known/openid-configuration`);
  const oauthUrl = withPath(url, `/.well-known/oauth-authorization-server${path}`);
  return async (signal) => {
    const openId = await readMetadata(openIdUrl, issuer, signal);
    const metadata = openId.kind === "value" ? openId : await readMetadata(oauthUrl, issuer, signal);
    if (metadata.kind === "value") return await createKeyFetcher(metadata.value)(signal);
    return openId.kind === "problems" ? withProblems(...openId.problems, ...metadata.problems) : metadata;
  };
}

function withPath(url: URL, path: string): URL {
  const metadataUrl = new URL(url);
  metadataUrl.pathname = path;
  return metadataUrl;
}

async function readMetadata(url: URL, issuer: string, signal: AbortSignal): Promise<ParseResult<URL>> {
  const text = await fetchText({ url, signal });
  if (text.kind === "problems") return text;
  const document = parseJsonObject(text.value, withoutQuery(url));
  if (document.kind === "problems") return document;
  const { issuer: named, jwks_uri: keysUrl } = document.value;
  // Without this check, one issuer could impersonate another (RFC 8414 §3.3, OpenID Connect Discovery §4.3).
  if (named !== issuer) return withProblems(`${withoutQuery(url)} names a different issuer`);
  if (typeof keysUrl !== "string") return withProblems(`${withoutQuery(url)} has no "jwks_uri"`);
  return parseProviderUrl(keysUrl);
}
