import { existsSync, statSync, writeFileSync } from "node:fs";
import { once } from "node:events";
import { connect } from "node:net";
import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { ConfigurationError } from "../../src/server/index.ts";
import type { OnUpkeep } from "../../src/stores/index.ts";
import { logUpkeep, watchStoreFailure } from "../../src/server/start-server.ts";
import { silentLog } from "@protoport/telemetry/logs";
import { createByteReader, exchangeHttp1, fieldValue, openSocket, overHttp1 } from "@protoport/testing/http";
// oxfmt-ignore
import { createSigningKey, createTempFolder, openLogLines, startIdentityProvider, testAudience,
  within
} from "@protoport/testing/process";
import { fakeStore } from "../support/plants/fake-store.ts";
import { type ConfiguredServer, startConfigured } from "../support/server/start-configured.ts";

const start = (environment: Readonly<Record<string, string>>): Promise<ConfiguredServer> =>
  startConfigured({ LOG_LEVEL: "silent", ...environment });

interface Outcome {
  readonly httpStatus: number;
  readonly challenge: string | null;
  readonly retryAfter: string | null;
  readonly body: unknown;
}

async function request({ baseUrl }: ConfiguredServer, method: string, path: string, token?: string): Promise<Outcome> {
  // The drain would wait for a connection that is kept open.
  const headers = { connection: "close", ...(token !== undefined && { authorization: `Bearer ${token}` }) };
  const response = await fetch(`${baseUrl}${path}`, { method, headers });
  const body = await response.text();
  return {
    httpStatus: response.status,
    challenge: response.headers.get("www-authenticate"),
    retryAfter: response.headers.get("retry-after"),
    body: body === "" ? undefined : JSON.parse(body),
  };
}

const startProvider = async () => await startIdentityProvider(await createSigningKey("ES256", "key"));

test("a server warns that no credentials are configured", async () => {
  const server = await startConfigured({});
  await server.drain();
  expect(server.lines()).toContainEqual(expect.objectContaining({ level: "warn", errorCode: "ERR_NO_CREDENTIALS" }));
});

test("a server with credentials does not warn that none are configured", async () => {
  const server = await startConfigured({ PLANTSTORE_TOKENS: "t".repeat(32) });
  await server.drain();
  expect(server.lines()).not.toContainEqual(expect.objectContaining({ errorCode: "ERR_NO_CREDENTIALS" }));
});

describe("a server behind a trusted proxy", () => {
  const trusted = { PLANTSTORE_TRUSTED_PROXIES: "127.0.0.0/8" };
  const proxied = { ...trusted, PLANTSTORE_PROXY_PROTOCOL: "on" };

  test.each([
    { name: "reads forwarded fields", environment: trusted, want: "203.0.113.9" },
    { name: "ignores forwarded fields with the PROXY protocol", environment: proxied, want: "127.0.0.7" },
    {
      name: "reads forwarded fields with the PROXY protocol if configured",
      environment: { ...proxied, PLANTSTORE_PROXY_FIELDS: "x-forwarded" },
      want: "203.0.113.9",
    },
  ])("$name", async ({ environment, want }) => {
    await using server = await startConfigured(environment);
    const socket = openSocket(server);
    if ("PLANTSTORE_PROXY_PROTOCOL" in environment) socket.write("PROXY TCP4 127.0.0.7 127.0.0.1 47 80\r\n");
    using connection = overHttp1(socket, createByteReader(socket), "localhost");
    connection.request({ httpMethod: "GET", path: "/livez", header: [["x-forwarded-for", "203.0.113.9"]] });
    await connection.readResponse();
    await expect.poll(() => server.lines().find(({ msg }) => msg === "call")).toMatchObject({ peer: want });
    socket.destroy();
  });
});

test("a server logs that it has stopped after its store is closed", async () => {
  using folder = createTempFolder();
  const isOpenAt: (readonly [msg: unknown, isOpen: boolean])[] = [];
  const write = (line: string) => isOpenAt.push([JSON.parse(line).msg, existsSync(folder.file("plants.db-wal"))]);
  const environment = { DATABASE_URL: `sqlite:${folder.file("plants.db")}` };
  await (await startConfigured(environment, { logDestination: { write } })).drain();
  expect(isOpenAt).toContainEqual(["draining", true]);
  expect(isOpenAt).toContainEqual(["stopped", false]);
});

test("the log names the listening Unix socket and the protocols", async () => {
  using folder = createTempFolder();
  const path = folder.file("socket");
  const server = await startConfigured({ HOST: `unix:${path}`, PLANTSTORE_MCP: "on" });
  expect(statSync(path).mode & 0o777).toBe(0o660);
  await server.drain();
  const line = server.lines().find(({ msg }) => msg === "listening");
  expect(line).toMatchObject({ address: path, protocols: "REST, Connect, gRPC, gRPC-Web, MCP" });
  expect(line).not.toHaveProperty("port");
});

/** Returns settings by which a server accepts a provider's JWTs. */
function trusting({ issuer }: { readonly issuer: string }): Record<string, string> {
  return { PLANTSTORE_JWT_ISSUERS: issuer, PLANTSTORE_JWT_AUDIENCES: testAudience };
}

describe("a server with an identity provider", () => {
  test("requires the scope with PLANTSTORE_PROVIDER_SCOPES=enforced", async () => {
    using provider = await startProvider();
    await using server = await start({ ...trusting(provider), PLANTSTORE_PROVIDER_SCOPES: "enforced" });
    const want = { httpStatus: 400, body: { error: 7 } };
    expect(await request(server, "DELETE", "/plants/1", await provider.sign())).toMatchObject(want);
    const wide = await provider.sign({ scope: "openid plants:delete" });
    expect(await request(server, "DELETE", "/plants/1", wide)).toMatchObject({ httpStatus: 204 });
  });

  test("becomes ready once an unavailable provider recovers", async () => {
    using provider = await startProvider();
    provider.respond = (_request, response) => void response.writeHead(503).end();
    await using server = await start(trusting(provider));
    const token = await provider.sign();
    const unavailable = {
      httpStatus: 400,
      challenge: null,
      retryAfter: expect.stringMatching(/^[1-9]\d*$/),
      body: { error: 14, message: "the token cannot be verified right now" },
    };
    expect(await request(server, "DELETE", "/plants/1", token)).toEqual(unavailable);
    const want = { httpStatus: 503, body: { obstacles: ["credentials"] } };
    expect(await request(server, "GET", "/readyz")).toMatchObject(want);
    provider.respond = undefined;
    await server.reload();
    expect(await request(server, "DELETE", "/plants/1", token)).toMatchObject({ httpStatus: 204 });
    expect(await request(server, "GET", "/readyz")).toMatchObject({ httpStatus: 200 });
  });
});

describe("the protected resource metadata (RFC 9728)", () => {
  test("is public, and challenges link to it", async () => {
    using provider = await startProvider();
    await using server = await start({
      ...trusting(provider),
      PLANTSTORE_PROVIDER_SCOPES: "enforced",
      PLANTSTORE_PUBLIC_URL: "https://plants.example/",
    });
    const { challenge } = await request(server, "DELETE", "/plants/1");
    expect(challenge).toBe(
      'Bearer realm="plantstore", resource_metadata="https://plants.example/.well-known/oauth-protected-resource"',
    );
    expect(await request(server, "GET", "/.well-known/oauth-protected-resource")).toMatchObject({
      httpStatus: 200,
      body: {
        resource: "https://plants.example",
        authorization_servers: [provider.issuer],
        scopes_supported: ["plants:delete"],
      },
    });
  });

  test("does not exist without a public URL", async () => {
    await using server = await start({ PLANTSTORE_TOKENS: "sixteen-characters" });
    const path = "/.well-known/oauth-protected-resource";
    const want = { httpStatus: 400, challenge: 'Bearer realm="plantstore"' };
    expect(await request(server, "GET", path)).toMatchObject(want);
    expect(await request(server, "GET", path, "sixteen-characters")).toMatchObject({ httpStatus: 404 });
  });

  test.each([
    { name: "an RPC", httpMethod: "DELETE", path: "/plants/1", resource: "/api" },
    { name: "the MCP endpoint", httpMethod: "POST", path: "/mcp", resource: "/api/mcp" },
    { name: "another endpoint", httpMethod: "GET", path: "/openapi.json", resource: "/api/openapi.json" },
  ])("the challenge for $name links to the metadata at the host's root", async ({ httpMethod, path, resource }) => {
    await using server = await startConfigured({
      PLANTSTORE_TOKENS: "sixteen-characters",
      PLANTSTORE_PUBLIC_URL: "https://plants.example/api",
      PLANTSTORE_MCP: "on",
    });
    const address = { address: "127.0.0.1", port: server.port };
    const refused = await exchangeHttp1(address, { httpMethod, path: `/api${path}`, header: [] });
    const documentPath = `/.well-known/oauth-protected-resource${resource}`;
    const want = `Bearer realm="plantstore", resource_metadata="https://plants.example${documentPath}"`;
    expect(fieldValue(refused.header, "www-authenticate")).toBe(want);
    const document = await exchangeHttp1(address, { httpMethod: "GET", path: documentPath, header: [] });
    expect(JSON.parse(String(document.body))).toMatchObject({ resource: `https://plants.example${resource}` });
    const header = [["authorization", "Bearer sixteen-characters"]] as const;
    const belowPath = await exchangeHttp1(address, { httpMethod: "GET", path: `/api${documentPath}`, header });
    expect(belowPath.httpStatus).toBe(404);
  });
});

describe("startServer", () => {
  test("closes a connection at PLANTSTORE_MAX_CONNECTION_AGE_MS", async () => {
    await using server = await start({ PLANTSTORE_MAX_CONNECTION_AGE_MS: "1" });
    const socket = connect(server.port, "127.0.0.1").resume();
    socket.write("GET /livez HTTP/1.1\r\nhost: x\r\n\r\n");
    await within(once(socket, "close"), "the end of the connection", 5_000);
  });

  test("closes everything when its port is in use", async () => {
    using folder = createTempFolder();
    writeFileSync(folder.file("tokens"), "");
    const watched = { PLANTSTORE_TOKEN_HASHES_FILE: folder.file("tokens") };
    await using other = await start({});
    const refused = start({ ...watched, PORT: String(other.port) });
    await expect(refused).rejects.toThrow(`port ${other.port} of 127.0.0.1 is in use`);
    await expect(start({ ...watched, PLANTSTORE_ADMIN_ADDRESS: String(other.port) })).rejects.toThrow(
      `cannot listen on PLANTSTORE_ADMIN_ADDRESS: port ${other.port} of 127.0.0.1 is in use`,
    );
  });

  test("reports an invalid token hashes file with line and problem", async () => {
    using folder = createTempFolder();
    const file = folder.file("tokens");
    writeFileSync(file, "# fine\nnonsense\n");
    const started = start({ PLANTSTORE_TOKEN_HASHES_FILE: file });
    await expect(started).rejects.toThrow(ConfigurationError);
    await expect(started).rejects.toMatchObject({ code: "ERR_CONFIGURATION" });
    await expect(started).rejects.toThrow(`${file}: line 2: a line must have 4 columns `);
  });
});

test("a server logs each store maintenance task once, with its duration", async () => {
  using folder = createTempFolder();
  const lines: Readonly<Record<string, unknown>>[] = [];
  const started = async (): Promise<void> => {
    const options = { plantsWhenCreated: { first: 1n, last: 1n } };
    const server = await startConfigured({ DATABASE_URL: `sqlite:${folder.file("plants.db")}` }, options);
    await server.drain();
    lines.push(...server.lines());
  };
  const ofUpkeep = (): unknown[] => lines.filter((line) => "lastedMs" in line);
  await started();
  const lastedMs = expect.any(Number);
  const migrated = { level: "info", msg: "schema migrated", from: 0, to: expect.any(Number), lastedMs };
  expect(ofUpkeep()).toMatchObject([migrated]);
  using db = new DatabaseSync(folder.file("plants.db"));
  const record = "INSERT INTO deletions (plant_id, deleted_at, subject, request_id, batch) VALUES (1, 0, '', '', 1)";
  db.exec(record.replace("1, 0", "1, (unixepoch() - 89 * 86400) * 1000"));
  for (let i = 0; i < 3; i++) db.exec(record);
  await started();
  const dropped = { level: "info", msg: "old deletion records dropped", count: 2, lastedMs: expect.any(Number) };
  expect(ofUpkeep()).toMatchObject([migrated, dropped]);
  db.exec(`${record}; CREATE TRIGGER keep BEFORE DELETE ON deletions BEGIN SELECT RAISE(ABORT, 'kept'); END`);
  await started();
  const msg = "cannot drop old deletion records";
  const failed = { level: "warn", msg, problem: "kept", lastedMs: expect.any(Number) };
  expect(ofUpkeep()).toMatchObject([migrated, dropped, failed]);
});

test.each<{ event: Parameters<OnUpkeep>[0]; level: "info" | "warn"; msg: string; errorCode?: string }>(
  // oxfmt-ignore
  [
    { event: { kind: "migrated", from: 1, to: 2, lastedMs: 3 }, level: "info", msg: "schema migrated" },
    { event: { kind: "records-dropped", count: 4, lastedMs: 5 }, level: "info", msg: "old deletion records dropped" },
    { event: { kind: "retention-failed", problem: "full", lastedMs: 6 }, level: "warn",
      msg: "cannot drop old deletion records", errorCode: "ERR_RETENTION_FAILED" },
    { event: { kind: "second-name-found", problem: "the file has 2 names" }, level: "warn",
      msg: "the file of the store has a second name", errorCode: "ERR_STORE_SECOND_NAME" },
    { event: { kind: "second-name-gone", lastedMs: 10 }, level: "warn",
      msg: "the file of the store has a single name again" },
    { event: { kind: "checkpoints-stalled", problem: "the disk failed" }, level: "warn",
      msg: "the write-ahead log is not copied into the file", errorCode: "ERR_CHECKPOINTS_STALLED" },
    { event: { kind: "checkpoints-resumed", lastedMs: 11 }, level: "warn",
      msg: "the write-ahead log is copied into the file again" },
    { event: { kind: "connections-refused", problem: "x", lastedMs: 9 }, level: "warn",
      msg: "too few database connections; allow five per process" },
  ],
)("logUpkeep logs the event $event.kind in one line with all its fields", ({ event, level, msg, errorCode }) => {
  const lines: unknown[] = [];
  const write = (at: string) => (fields: object, text?: string) => void lines.push([at, fields, text]);
  logUpkeep({ info: write("info"), warn: write("warn") })(event);
  const { kind: _, ...fields } = event;
  expect(lines).toEqual([[level, { ...fields, ...(errorCode && { errorCode }) }, msg]]);
});

test("watchStoreFailure logs a failure once", async () => {
  const { log, lines } = openLogLines("fatal");
  const broken = fakeStore({ needsRestart: true });
  const watch = watchStoreFailure(broken, log);
  await watch.storeFailed;
  // Once a second watch has reported the failure, there was enough time for another line of the first.
  const later = watchStoreFailure(broken, silentLog);
  await later.storeFailed;
  expect(lines()).toHaveLength(1);
  watch.stop();
  later.stop();
});
