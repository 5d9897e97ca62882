// oxfmt-ignore
import { Client, ClientCredentialsProvider, StreamableHTTPClientTransport, type Transport
} from "@modelcontextprotocol/client";
import { Client as Client1 } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport as Transport1 } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { type ClientServer, credential } from "./client-server.ts";
import { everyType, greenhouse, type Results } from "./results.ts";

/** A connected client, in the form that both SDK versions have. */
export interface Connected {
  listTools(): Promise<{ readonly tools: readonly { readonly name: string }[] }>;
  callTool(
    params: { readonly name: string; readonly arguments?: Record<string, unknown> },
    options?: { readonly onprogress?: () => void; readonly signal?: AbortSignal },
  ): Promise<Record<string, unknown>>;
  close(): Promise<void>;
}

const client = { name: "test", version: "1" };

/** Connects an SDK 2 client, for one revision. */
export async function connect2(url: string, revision: string, authorization: string): Promise<Connected> {
  const requestInit = { headers: { authorization } };
  return await connectBy(new StreamableHTTPClientTransport(new URL(url), { requestInit }), revision);
}

/**
 * Connects an SDK 2 client that has no token. The client discovers the authorization server, and gets a token there
 * with its client credentials.
 */
export async function connectWithoutToken(url: string, issuer: string): Promise<Connected> {
  const credentials = { clientId: "agent", clientSecret: "secret", expectedIssuer: issuer };
  const authProvider = new ClientCredentialsProvider(credentials);
  return await connectBy(new StreamableHTTPClientTransport(new URL(url), { authProvider }), "2026-07-28");
}

async function connectBy(transport: Transport, revision: string): Promise<Connected> {
  const options = revision === "2026-07-28" ? { versionNegotiation: { mode: { pin: revision } } } : {};
  const connected = new Client(client, options);
  await connected.connect(transport);
  return {
    listTools: () => connected.listTools(),
    callTool: async (params, callOptions) => await connected.callTool(params, callOptions),
    close: () => connected.close(),
  };
}

/** Connects an SDK 1 client. */
export async function connect1(url: string, authorization: string): Promise<Connected> {
  const connected = new Client1(client);
  await connected.connect(new Transport1(new URL(url), { requestInit: { headers: { authorization } } }));
  return {
    listTools: () => connected.listTools(),
    callTool: async (params, callOptions) => await connected.callTool(params, undefined, callOptions),
    close: () => connected.close(),
  };
}

/** Makes all calls with a client. */
export async function callAll(
  server: ClientServer,
  connect: (url: string, authorization: string) => Promise<Connected>,
): Promise<Results> {
  const connected = await connect(server.url, credential);
  const { tools } = await connected.listTools();
  const water = { name: `${greenhouse}_WaterBed`, arguments: { bed: "9007199254740993", liters: 3 } };
  const call = await connected.callTool(water);
  const failed = await connected.callTool({ name: `${greenhouse}_WaterBed`, arguments: { note: "dry" } });
  let progress = 0;
  const watch = { name: `${greenhouse}_WatchReadings`, arguments: { sensor: "a", count: 3 } };
  const stream = await connected.callTool(watch, { onprogress: () => void (progress += 1) });
  const types = await connected.callTool({ name: "kitchensink_v1_KitchenSink_Create", arguments: everyType });
  const isCancelled = await cancel(connected, server);
  await connected.close();
  return {
    tools: tools.map(({ name }) => name),
    call: call["structuredContent"],
    error: failed["isError"] === true ? textOf(failed) : "no error",
    stream: stream["structuredContent"],
    progress,
    types: types["structuredContent"],
    isRefused: await isRefused(connect(server.url, "none")),
    isCancelled,
  };
}

async function cancel(connected: Connected, server: ClientServer): Promise<boolean> {
  const controller = new AbortController();
  const params = { name: `${greenhouse}_WatchReadings`, arguments: { sensor: "endless", count: 1 } };
  const pending = connected.callTool(params, { signal: controller.signal, onprogress: () => controller.abort() });
  const isAborted = await isRefused(pending);
  // Stateless clients close the response. In earlier revisions, clients send a notification.
  await server.cancelled();
  return isAborted;
}

async function isRefused(pending: Promise<unknown>): Promise<boolean> {
  return await pending.then(
    () => false,
    () => true,
  );
}

function textOf({ content }: Record<string, unknown>): string {
  const [first]: { readonly text?: string }[] = JSON.parse(JSON.stringify(content));
  return first?.text ?? "";
}
