/** What a client may know of this service before it has a token. */
export interface ProtectedResource {
  /** The base URL that clients use. */
  readonly publicUrl: URL;
  /** The issuers whose tokens are taken; only those that are URLs can be told. */
  readonly issuers: readonly string[];
  /** The scopes that a token may need here. */
  readonly scopes: readonly string[];
}

/** The metadata document, as an endpoint that a gateway can serve. */
export interface MetadataEndpoint {
  /** Where the document is for clients; challenges point there. */
  readonly url: string;
  /** The path at the root of the host: RFC 9728 §3.1 puts the well-known part before the path of the resource. */
  readonly path: string;
  /** Whatever path the service itself has. */
  readonly atRoot: true;
  /** A client without a token asks for it to learn where to get one. */
  readonly open: true;
  readonly answer: () => {
    readonly httpStatus: number;
    readonly header: Record<string, string>;
    readonly body: string;
  };
}

/** Returns the metadata of a protected resource (RFC 9728 §2): where tokens come from, and what they need. */
export function protectedResourceMetadata({ publicUrl, issuers, scopes }: ProtectedResource): MetadataEndpoint {
  // RFC 9728 §3.1: a slash that ends the path is removed first.
  const resourcePath = publicUrl.pathname.replace(/\/+$/, "");
  const path = `/.well-known/oauth-protected-resource${resourcePath}`;
  const authorizationServers = issuers.filter((issuer) => URL.canParse(issuer));
  const body = JSON.stringify({
    resource: `${publicUrl.origin}${resourcePath}`,
    // §2: a member without values is left out.
    ...(authorizationServers.length > 0 && { authorization_servers: authorizationServers }),
    ...(scopes.length > 0 && { scopes_supported: scopes }),
    bearer_methods_supported: ["header"],
    resource_name: "Plant Store",
  });
  // An hour: it changes with the configuration only.
  const header = { "content-type": "application/json", "cache-control": "public, max-age=3600" };
  return {
    url: `${publicUrl.origin}${path}`,
    path,
    atRoot: true,
    open: true,
    answer: () => ({ httpStatus: 200, header, body }),
  };
}
