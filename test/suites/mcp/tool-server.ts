import { startAuthorizationServer } from "../../../protoport/testing/src/auth/authorization-server.ts";
import type { TokenRequest } from "../../../protoport/testing/src/auth/authorization-server.ts";
import { freePort } from "../../../protoport/testing/src/process/free-port.ts";
import { startConfigured } from "../../support/server/start-configured.ts";

/** A plant store with tools, and its identity provider. Dispose it with `await using`. */
export interface ToolServer extends AsyncDisposable {
  readonly url: string;
  readonly issuer: string;
  readonly tokenRequests: readonly TokenRequest[];
  tokenWith(scope: string): Promise<string>;
}

/** Starts a plant store with plants 1 to 999, which accepts a new identity provider's tokens. */
export async function startToolServer(): Promise<ToolServer> {
  await using opened = new AsyncDisposableStack();
  const provider = opened.use(await startAuthorizationServer());
  const port = await freePort();
  const baseUrl = `http://127.0.0.1:${port}`;
  // oxfmt-ignore
  opened.use(
    await startConfigured({
      PORT: String(port), PLANTSTORE_MCP: "on", PLANTSTORE_PUBLIC_URL: baseUrl, PLANTSTORE_JWT_ISSUERS: provider.issuer,
      PLANTSTORE_JWT_AUDIENCES: `${baseUrl},${baseUrl}/mcp`, PLANTSTORE_JWT_KEYS_URLS: provider.keysUrl,
      PLANTSTORE_PROVIDER_SCOPES: "enforced",
    }),
  );
  const all = opened.move();
  return {
    url: `${baseUrl}/mcp`,
    issuer: provider.issuer,
    tokenRequests: provider.tokenRequests,
    tokenWith: (scope) => provider.sign({ aud: baseUrl, scope }),
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}
