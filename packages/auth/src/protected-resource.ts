import type { Endpoint } from "@plantstore/gateway";
import { type OptionNames, refuseUnknownOptions, required } from "@plantstore/gateway/options";

/** What a client may learn about this service without a token. */
export interface ProtectedResource {
  /** Its name, for people. */
  readonly name: string;
  /** The base URL that clients use. */
  readonly publicUrl: URL;
  /** The issuers whose tokens are accepted; only those that are URLs are listed. */
  readonly issuers: readonly string[];
  /** The scopes that a token may need. */
  readonly scopes: readonly string[];
}

/** The metadata document as an endpoint: at the root of the host, open to clients that look for a token. */
export interface ResourceMetadata extends Endpoint {
  /** The URL of the document, to which challenges point. */
  readonly url: string;
}

const protectedResourceNames: OptionNames<ProtectedResource> = {
  name: required,
  publicUrl: required,
  issuers: required,
  scopes: required,
};

/**
 * Creates the metadata document of a protected resource (RFC 9728 §2): where to get tokens, and what they need.
 *
 * @throws TypeError for properties that do not exist
 */
export function createResourceMetadata(resource: ProtectedResource): ResourceMetadata {
  refuseUnknownOptions(resource, protectedResourceNames, "createResourceMetadata");
  const { name, publicUrl, issuers, scopes } = resource;
  // RFC 9728 §3.1: the well-known part comes before the path of the resource, whose last slash is removed.
  const resourcePath = publicUrl.pathname.replace(/\/+$/, "");
  const path = `/.well-known/oauth-protected-resource${resourcePath}`;
  const authorizationServers = issuers.filter((issuer) => URL.canParse(issuer));
  const body = JSON.stringify({
    resource: `${publicUrl.origin}${resourcePath}`,
    // RFC 9728 §2: a member without values is omitted.
    ...(authorizationServers.length > 0 && { authorization_servers: authorizationServers }),
    ...(scopes.length > 0 && { scopes_supported: scopes }),
    bearer_methods_supported: ["header"],
    resource_name: name,
  });
  // An hour: it only changes with the configuration.
  const header = { "content-type": "application/json", "cache-control": "public, max-age=3600" };
  return {
    url: `${publicUrl.origin}${path}`,
    path,
    atRoot: true,
    open: true,
    answer: () => ({ httpStatus: 200, header, body }),
  };
}
