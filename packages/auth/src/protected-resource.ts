import type { Endpoint } from "@plantstore/gateway";
import { type OptionNames, refuseUnknownOptions, required } from "@plantstore/gateway/options";

/** The public description of this service. */
export interface ProtectedResource {
  /** The display name. */
  readonly name: string;
  /** The base URL that clients use. */
  readonly publicUrl: URL;
  /** The issuers whose tokens are accepted. Only issuers that are URLs are published. */
  readonly issuers: readonly string[];
  /** The scopes that procedures require. */
  readonly scopes: readonly string[];
}

/** The endpoint of the metadata document, at the root of the host and without authentication. */
export interface ResourceMetadata extends Endpoint {
  /** The URL of the document, for challenges. */
  readonly url: string;
}

const protectedResourceNames: OptionNames<ProtectedResource> = {
  name: required,
  publicUrl: required,
  issuers: required,
  scopes: required,
};

/**
 * Creates the metadata document of a protected resource (RFC 9728 §2): where to obtain tokens, and their scopes.
 *
 * @throws TypeError for unknown properties
 */
export function createResourceMetadata(resource: ProtectedResource): ResourceMetadata {
  refuseUnknownOptions(resource, protectedResourceNames, "createResourceMetadata");
  const { name, publicUrl, issuers, scopes } = resource;
  // RFC 9728 §3.1: the well-known part precedes the path of the resource, without the trailing slash of the path.
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
  // Cached for one hour, because the document changes only with the configuration.
  const header = { "content-type": "application/json", "cache-control": "public, max-age=3600" };
  return {
    url: `${publicUrl.origin}${path}`,
    path,
    atRoot: true,
    open: true,
    handle: () => ({ httpStatus: 200, header, body }),
  };
}
