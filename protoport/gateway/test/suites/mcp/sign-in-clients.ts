import { Client, type OAuthDiscoveryState, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { Client as Client1 } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport as Transport1 } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const client = { name: "test", version: "1" };

/** What a client has found out about the authorization server. Empty before the first request. */
type Discovered = { state?: OAuthDiscoveryState };

/**
 * What an application with the SDKs stores, and its user's browser, in which the user consents. The SDKs' own discovery
 * finds the authorization server and the scopes.
 */
class SignIn {
  readonly redirectUrl = "http://127.0.0.1:1/callback";
  readonly clientMetadata = {
    client_name: "test",
    redirect_uris: [this.redirectUrl],
    grant_types: ["authorization_code"],
    response_types: ["code"],
    token_endpoint_auth_method: "none",
  };
  #information: Registered | undefined;
  #tokens: Tokens | undefined;
  #verifier = "";
  readonly #discovered: Discovered = {};
  #callback: URLSearchParams | undefined;

  clientInformation(): Registered | undefined {
    return this.#information;
  }

  saveClientInformation(information: Registered): void {
    this.#information = information;
  }

  tokens(): Tokens | undefined {
    return this.#tokens;
  }

  saveTokens(tokens: Tokens): void {
    this.#tokens = tokens;
  }

  saveCodeVerifier(verifier: string): void {
    this.#verifier = verifier;
  }

  codeVerifier(): string {
    return this.#verifier;
  }

  saveDiscoveryState(state: OAuthDiscoveryState): void {
    this.#discovered.state = state;
  }

  discoveryState(): Discovered["state"] {
    return this.#discovered.state;
  }

  async redirectToAuthorization(url: URL): Promise<void> {
    this.#callback = new URL((await fetch(url, { redirect: "manual" })).headers.get("location") ?? "").searchParams;
  }

  /** Calls a function again after each sign-in that it needs. */
  async during<T>(run: () => Promise<T>, finish: (callback: URLSearchParams) => Promise<void>): Promise<T> {
    for (;;) {
      try {
        return await run();
      } catch (error) {
        const callback = this.#callback;
        if (callback === undefined) throw error;
        this.#callback = undefined;
        await finish(callback);
      }
    }
  }
}

type Registered = { client_id: string };
type Tokens = { access_token: string; token_type: string };

/** Calls a tool with a client that has no token at first, and returns the structured result. */
export type SignInAndCall = (url: string, tool: string) => Promise<unknown>;

/** Calls a tool with the SDK 2. */
export async function signInAndCall2(url: string, tool: string): Promise<unknown> {
  const authProvider = new SignIn();
  let transport = new StreamableHTTPClientTransport(new URL(url), { authProvider });
  const finish = (callback: URLSearchParams): Promise<void> => transport.finishAuth(callback);
  const connected = await authProvider.during(async () => {
    transport = new StreamableHTTPClientTransport(new URL(url), { authProvider });
    const connecting = new Client(client, { versionNegotiation: { mode: { pin: "2026-07-28" } } });
    await connecting.connect(transport);
    return connecting;
  }, finish);
  const { structuredContent } = await authProvider.during(() => connected.callTool({ name: tool }), finish);
  await connected.close();
  return structuredContent;
}

/** Calls a tool with the SDK 1. */
export async function signInAndCall1(url: string, tool: string): Promise<unknown> {
  const authProvider = new SignIn();
  let transport = new Transport1(new URL(url), { authProvider });
  const finish = (callback: URLSearchParams): Promise<void> => transport.finishAuth(callback.get("code") ?? "");
  const connected = await authProvider.during(async () => {
    transport = new Transport1(new URL(url), { authProvider });
    const connecting = new Client1(client);
    await connecting.connect(transport);
    return connecting;
  }, finish);
  const { structuredContent } = await authProvider.during(() => connected.callTool({ name: tool }), finish);
  await connected.close();
  return structuredContent;
}
