import { createHash, randomUUID } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { text } from "node:stream/consumers";
import { createSigningKey, type IdentityProvider, startIdentityProvider } from "./identity-provider.ts";

/** The parameters in a request for a token, or for a user's consent. */
export type TokenRequest = Readonly<Record<string, string>>;

/** An OAuth 2.1 authorization server on the loopback address, whose users consent to every request. */
export interface AuthorizationServer extends Disposable {
  readonly issuer: string;
  readonly keysUrl: string;
  readonly sign: IdentityProvider["sign"];
  /** The parameters with which clients have requested tokens, oldest first. */
  readonly tokenRequests: readonly TokenRequest[];
  /** The parameters with which clients have requested users' consent, oldest first. */
  readonly consentRequests: readonly TokenRequest[];
  /** Returns the scopes that a user grants. By default, a user grants all requested scopes. */
  grant: (requested: string) => string;
}

/**
 * Starts an authorization server with RFC 8414 metadata, dynamic registration (RFC 7591), authorization codes with PKCE
 * (RFC 7636), and client credentials. A token is valid for the resource that the token request names (RFC 8707).
 */
export async function startAuthorizationServer(): Promise<AuthorizationServer> {
  const provider = await startIdentityProvider(await createSigningKey("ES256", "key"));
  const consents = new Map<string, TokenRequest>();
  const tokenRequests: TokenRequest[] = [];
  const consentRequests: TokenRequest[] = [];
  // oxfmt-ignore
  const server: AuthorizationServer = {
    issuer: provider.issuer, keysUrl: provider.keysUrl, sign: (...args) => provider.sign(...args), tokenRequests,
    consentRequests, grant: (requested) => requested, [Symbol.dispose]: () => provider.stop(),
  };
  provider.respond = (request, response) => {
    const url = new URL(request.url ?? "", provider.issuer);
    const document = documentsOf(provider)[url.pathname];
    if (document !== undefined) return respond(response, 200, document);
    if (url.pathname === "/authorize") {
      const consent = Object.fromEntries(url.searchParams);
      consentRequests.push(consent);
      const code = randomUUID();
      consents.set(code, { ...consent, scope: server.grant(consent["scope"] ?? "") });
      const location = new URL(consent["redirect_uri"] ?? "");
      for (const [name, value] of Object.entries({ code, state: consent["state"], iss: provider.issuer }))
        if (value !== undefined) location.searchParams.set(name, value);
      return response.writeHead(302, { location: location.href }).end();
    }
    if (url.pathname === "/register") return void register(request, response);
    if (url.pathname !== "/token") return respond(response, 404, {});
    void text(request).then(async (body) => {
      const sent: TokenRequest = Object.fromEntries(new URLSearchParams(body));
      tokenRequests.push(sent);
      const granted = grantedTo(sent, consents);
      if (granted === undefined) return respond(response, 400, { error: "invalid_grant" });
      const token = await provider.sign({ aud: granted["resource"], scope: granted["scope"] });
      respond(response, 200, { access_token: token, token_type: "Bearer", expires_in: 300, scope: granted["scope"] });
    });
  };
  return server;
}

function documentsOf({ issuer, keysUrl, keys }: IdentityProvider): Readonly<Record<string, object>> {
  // oxfmt-ignore
  const metadata = {
    issuer, authorization_endpoint: `${issuer}/authorize`, token_endpoint: `${issuer}/token`,
    registration_endpoint: `${issuer}/register`, jwks_uri: keysUrl, response_types_supported: ["code"],
    grant_types_supported: ["authorization_code", "client_credentials"], code_challenge_methods_supported: ["S256"],
    token_endpoint_auth_methods_supported: ["none", "client_secret_basic"],
    authorization_response_iss_parameter_supported: true,
  };
  return { "/keys": { keys: keys.map(({ jwk }) => jwk) }, "/.well-known/oauth-authorization-server": metadata };
}

async function register(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const metadata: object = JSON.parse(await text(request));
  respond(response, 201, { ...metadata, client_id: randomUUID(), token_endpoint_auth_method: "none" });
}

// The request with the token's resource and scope, unless the code is unknown or was issued for another request.
function grantedTo(sent: TokenRequest, consents: Map<string, TokenRequest>): TokenRequest | undefined {
  if (sent["grant_type"] === "client_credentials") return sent;
  const consent = consents.get(sent["code"] ?? "");
  consents.delete(sent["code"] ?? "");
  const challenge = createHash("sha256")
    .update(sent["code_verifier"] ?? "")
    .digest("base64url");
  const isOfCode = challenge === consent?.["code_challenge"] && sent["resource"] === consent["resource"];
  return isOfCode ? consent : undefined;
}

function respond(response: ServerResponse, httpStatus: number, body: object): void {
  response.writeHead(httpStatus, { "content-type": "application/json" }).end(JSON.stringify(body));
}
