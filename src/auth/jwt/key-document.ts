import { fetchText, placeOf } from "../fetch-text.ts";
import { parseJsonObject } from "../json-object.ts";
import { unparsed, type Parsed } from "../parsed.ts";
import { parseProviderUrl } from "../provider-url.ts";

/** Fetches the text of a JWK Set; never rejects. */
export type FetchKeyDocument = (signal: AbortSignal) => Promise<Parsed<string>>;

/** Returns a function that fetches the key set at a URL. */
export function keysAt(url: URL): FetchKeyDocument {
  return (signal) => fetchText({ url, header: { accept: "application/jwk-set+json, application/json" }, signal });
}

/**
 * Returns a function that asks the issuer where its key set is, each time, and fetches it.
 *
 * OpenID Connect Discovery 1.0 §4 first, which nearly every provider has, then RFC 8414 §3. The two differ in where the
 * well-known part goes: behind the issuer's path, or before it.
 */
export function keysByDiscovery(issuer: string): FetchKeyDocument {
  const openIdUrl = URL.parse(`${issuer.replace(/\/$/, "")}/.well-known/openid-configuration`);
  const oauthUrl = URL.parse(issuer);
  if (oauthUrl !== null) {
    oauthUrl.pathname = `/.well-known/oauth-authorization-server${oauthUrl.pathname.replace(/\/$/, "")}`;
  }
  return async (signal) => {
    const openId = await readMetadata(openIdUrl, issuer, signal);
    const metadata = openId.kind === "value" ? openId : await readMetadata(oauthUrl, issuer, signal);
    if (metadata.kind === "value") return await keysAt(metadata.value)(signal);
    return openId.kind === "problems" ? unparsed(...openId.problems, ...metadata.problems) : metadata;
  };
}

async function readMetadata(url: URL | null, issuer: string, signal: AbortSignal): Promise<Parsed<URL>> {
  if (url === null) return unparsed(`the issuer ${issuer} is no URL`);
  const text = await fetchText({ url, signal });
  if (text.kind === "problems") return text;
  const document = parseJsonObject(text.value, placeOf(url));
  if (document.kind === "problems") return document;
  const { issuer: named, jwks_uri: keysUrl } = document.value;
  // RFC 8414 §3.3, OpenID Connect Discovery §4.3: or one issuer could speak for another.
  if (named !== issuer) return unparsed(`${placeOf(url)} is the metadata of another issuer`);
  if (typeof keysUrl !== "string") return unparsed(`${placeOf(url)} has no "jwks_uri"`);
  return parseProviderUrl(keysUrl);
}
