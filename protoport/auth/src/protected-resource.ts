import type { Endpoint } from "@protoport/gateway";
import { type OptionNames, refuseUnknownOptions, required } from "@protoport/gateway/options";

/** The public description of a service whose calls need a token. */
export interface ProtectedResource {
  /** The display name. */
  readonly name: string;
  /** The base URL that clients use. */
  readonly publicUrl: URL;
  /** The issuers whose tokens are accepted. Only issuers that are URLs are published. */
  readonly issuers: readonly string[];
  /** The scopes that procedures require. */
  readonly scopes: readonly string[];
  /**
   * Paths below the base URL, such as `/mcp`, that each get a separate metadata document. A client accepts a document
   * only if the document describes the URL that the client has called (RFC 9728 §3.3). None by default.
   */
  readonly paths?: readonly string[];
}

/** A protected resource's documents, and their URLs. */
export interface ResourceMetadata {
  /** The endpoints that serve the metadata documents, at the host's root and without authentication. */
  readonly endpoints: readonly Endpoint[];
  /** The URL of the metadata document for the base URL. */
  readonly url: string;
  /** The URLs of the metadata documents by path. Each path has two keys, with and without the base URL's path. */
  readonly urlsByPath: ReadonlyMap<string, string>;
}

const protectedResourceNames: OptionNames<ProtectedResource> = {
  name: required,
  publicUrl: required,
  issuers: required,
  scopes: required,
  paths: true,
};

/**
 * Creates a protected resource's metadata documents (RFC 9728 §2), which state where to obtain tokens, and their
 * scopes. Pass the result to `createBearerAuth`, and its endpoints to the gateway.
 *
 * @throws TypeError for unknown properties, and for a path that does not start with a slash
 */
export function createResourceMetadata(resource: ProtectedResource): ResourceMetadata {
  refuseUnknownOptions(resource, protectedResourceNames, "createResourceMetadata");
  const { publicUrl, paths = [] } = resource;
  const wrong = paths.find((path) => !path.startsWith("/"));
  if (wrong !== undefined) {
    throw new TypeError(`paths of createResourceMetadata must be similar to "/mcp", got ${JSON.stringify(wrong)}`);
  }
  const basePath = publicUrl.pathname.replace(/\/+$/, "");
  // Paths without the base URL's path are included, because a proxy in front of the gateway may have removed it.
  const urlsByPath = paths.flatMap((path) =>
    [path, basePath + path].map((key) => [key, publicUrl.origin + documentPathOf(basePath + path)] as const),
  );
  return {
    // The well-known part precedes the resource's path, without the path's trailing slash (RFC 9728 §3.1).
    endpoints: [...new Set(["", ...paths])].map((path) =>
      createDocument(resource, publicUrl.origin + basePath + path, documentPathOf(basePath + path)),
    ),
    url: publicUrl.origin + documentPathOf(basePath),
    urlsByPath: new Map(urlsByPath),
  };
}

function documentPathOf(path: string): string {
  return `/.well-known/oauth-protected-resource${path}`;
}

function createDocument({ name, issuers, scopes }: ProtectedResource, resource: string, path: string): Endpoint {
  const authorizationServers = issuers.filter((issuer) => URL.canParse(issuer));
  const body = JSON.stringify({
    resource,
    // A member without values is omitted (RFC 9728 §2).
    ...(authorizationServers.length > 0 && { authorization_servers: authorizationServers }),
    ...(scopes.length > 0 && { scopes_supported: scopes }),
    bearer_methods_supported: ["header"],
    resource_name: name,
  });
  // Clients may cache the document for one hour, because it changes only with the configuration.
  const header = { "content-type": "application/json", "cache-control": "public, max-age=3600" };
  return { path, atRoot: true, open: true, handle: () => ({ httpStatus: 200, header, body }) };
}
