import type { RequestListener } from "node:http";
import { text } from "node:stream/consumers";
import {
  createSigningKey,
  type IdentityProvider,
  startIdentityProvider,
} from "../../../packages/testing/src/auth/identity-provider.ts";
import { freePort } from "../../../packages/testing/src/process/free-port.ts";
import { startConfigured } from "../../support/server/start-configured.ts";

/** A plant store with tools, and its identity provider. Dispose of it with `await using`. */
export interface ToolServer extends AsyncDisposable {
  readonly url: string;
  /** The URL of the gRPC service. */
  readonly baseUrl: string;
  readonly issuer: string;
  /** The parameters of the token requests so far. */
  readonly tokenRequests: readonly Readonly<Record<string, string>>[];
  /** Returns a token with a scope. */
  tokenWith(scope: string): Promise<string>;
}

/** Starts a plant store with the plants 1 to 999, which accepts the tokens of a new identity provider. */
export async function startToolServer(): Promise<ToolServer> {
  await using opened = new AsyncDisposableStack();
  const provider = opened.use(await startIdentityProvider(await createSigningKey("ES256", "key")));
  const tokenRequests: Record<string, string>[] = [];
  provider.answer = serveTokens(provider, (request) => void tokenRequests.push(request));
  const port = await freePort();
  const baseUrl = `http://127.0.0.1:${port}`;
  opened.use(
    await startConfigured({
      PORT: String(port),
      PLANTSTORE_MCP: "on",
      PLANTSTORE_PUBLIC_URL: baseUrl,
      PLANTSTORE_JWT_ISSUER: provider.issuer,
      PLANTSTORE_JWT_AUDIENCE: baseUrl,
      PLANTSTORE_JWKS_URL: provider.keysUrl,
      PLANTSTORE_PROVIDER_SCOPES: "enforced",
    }),
  );
  const all = opened.move();
  return {
    url: `${baseUrl}/mcp`,
    baseUrl,
    issuer: provider.issuer,
    tokenRequests,
    tokenWith: (scope) => provider.sign({ aud: baseUrl, scope }),
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

/** Serves an authorization server (RFC 8414), which issues tokens for the resource and the scope of a request. */
function serveTokens(provider: IdentityProvider, onToken: (request: Record<string, string>) => void): RequestListener {
  const { issuer, keys } = provider;
  const documents: Readonly<Record<string, object>> = {
    "/keys": { keys: keys.map(({ jwk }) => jwk) },
    "/.well-known/oauth-authorization-server": {
      issuer,
      authorization_endpoint: `${issuer}/authorize`,
      token_endpoint: `${issuer}/token`,
      response_types_supported: ["code"],
      grant_types_supported: ["client_credentials"],
    },
  };
  return (incoming, outgoing) => {
    const respond = (body: object | undefined): void => {
      outgoing.writeHead(body === undefined ? 404 : 200, { "content-type": "application/json" });
      outgoing.end(JSON.stringify(body ?? {}));
    };
    if (incoming.url !== "/token") return respond(documents[incoming.url ?? ""]);
    void text(incoming).then(async (body) => {
      const request = Object.fromEntries(new URLSearchParams(body));
      onToken(request);
      const token = await provider.sign({ aud: request["resource"], scope: request["scope"] });
      respond({ access_token: token, token_type: "Bearer", expires_in: 300 });
    });
  };
}
