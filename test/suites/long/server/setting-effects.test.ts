import { createHash } from "node:crypto";
import { once } from "node:events";
import { existsSync, statSync } from "node:fs";
import { connect } from "node:http2";
import { connect as connectTcp } from "node:net";
import { DatabaseSync } from "node:sqlite";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { connect as connectTls } from "node:tls";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Configuration } from "../../../../src/server/settings.ts";
import { createCertificate } from "@protoport/testing/http";
// oxfmt-ignore
import { createSigningKey, createTempFolder, freePort, type IdentityProvider, startIdentityProvider, testAudience
} from "@protoport/testing/process";
import { startCommandLine } from "../../../support/process/command-line.ts";
import { type ConfiguredServer, startConfigured } from "../../../support/server/start-configured.ts";
import { Differs } from "../../../../protoport/testing/src/comparison.ts";
import { compare, deletePlant, type Environment, get } from "./effects/comparison.ts";

// Starts the server with two values for each setting, and compares what a caller or an operator observes. If the server
// read a setting but did not use it, both observations would be equal.

const token = "token-of-the-effects-test";
const authorization = { authorization: `Bearer ${token}` };
const guarded = { PLANTSTORE_TOKENS: token };
const unguarded = { PLANTSTORE_TOKENS: "another-token-of-the-test" };
const proxied = { ...guarded, PLANTSTORE_TRUSTED_PROXIES: "127.0.0.1" };
/** Milliseconds to wait for an effect that the other value must not have. */
const settledMs = 1_000;
const settledTurns = 50;
/** Two environments, and what is observed on a server with each of them. */
type Effect = readonly [off: Environment, on: Environment, observe: (server: ConfiguredServer) => unknown];

const folder = createTempFolder();
/** Accepts the tokens that it signs. The other provider introspects every token as active. */
let signing: IdentityProvider;
let introspecting: IdentityProvider;
let introspection: Environment;
let received: unknown;
let introspected: object = {};

beforeAll(async () => {
  const key = await createSigningKey("ES256", "key");
  [signing, introspecting] = [await startIdentityProvider(key), await startIdentityProvider(key)];
  introspecting.respond = (request, reply) => {
    received = [request.url, request.headers.authorization];
    reply.end(JSON.stringify({ active: true, sub: "ada", aud: "plantstore", ...introspected }));
  };
  introspection = {
    PLANTSTORE_INTROSPECTION_URL: `${introspecting.issuer}/introspect`,
    PLANTSTORE_INTROSPECTION_CLIENT_ID: "plantstore",
    PLANTSTORE_INTROSPECTION_CLIENT_SECRET_FILE: folder.write("secret", "s3cret"),
  };
});
afterAll(() => {
  signing.stop();
  introspecting.stop();
  folder[Symbol.dispose]();
});

/** Compares whether a provider's token is accepted. */
function ofJwt(off: Environment, on: Environment, ...signed: Parameters<IdentityProvider["sign"]>): Effect {
  const usual = { PLANTSTORE_JWT_ISSUERS: signing.issuer, PLANTSTORE_JWT_AUDIENCES: testAudience };
  const observe: Effect[2] = async (server) => await deletePlant(server, await signing.sign(...signed));
  return [{ ...usual, ...off }, { ...usual, ...on }, observe];
}

/** Compares what an introspection endpoint gets, and whether its response is accepted. */
function ofIntrospection(on: Environment, response: object = {}): Effect {
  introspected = response;
  const both = { ...introspection, ...on };
  return [introspection, both, async (server) => [await deletePlant(server, "opaque"), received]];
}

const deletes: Effect[2] = (server) => deletePlant(server, token);

/** Returns whether a call by a caller who makes several is refused. */
async function refusesOne(server: ConfiguredServer): Promise<boolean> {
  for (let call = 0; call < 5; call++) await deletePlant(server, token);
  await server.drain();
  return JSON.stringify(server.lines()).includes("ResourceExhausted");
}

function logsClient(fields: Readonly<Record<string, string>>): Effect[2] {
  return async (server) => {
    await deletePlant(server, token, fields);
    await server.drain();
    return JSON.stringify(server.lines()).includes("192.0.2.1");
  };
}

async function logsDeletion(server: ConfiguredServer): Promise<boolean> {
  await deletePlant(server, token);
  await server.drain();
  return server.lines().length > 0;
}

async function logsProbe(server: ConfiguredServer): Promise<boolean> {
  await get(server, "/livez");
  await server.drain();
  return JSON.stringify(server.lines()).includes("/livez");
}

async function presents({ port }: ConfiguredServer): Promise<unknown> {
  const socket = connectTls({ port, host: "127.0.0.1", rejectUnauthorized: false });
  await once(socket, "secureConnect");
  const { subject } = socket.getPeerCertificate();
  socket.destroy();
  return subject.CN;
}

function tlsOf(name: string): Environment {
  const { cert, key } = createCertificate(name);
  return { TLS_CERT_FILE: folder.write(`${name}.pem`, cert), TLS_KEY_FILE: folder.write(`${name}.key`, key) };
}

/** Counts turns, because a busy machine may suspend this process for a second. */
async function happens(event: Promise<unknown>): Promise<boolean> {
  const effect = { isSeen: false };
  void event.then(() => (effect.isSeen = true));
  for (let turn = 0; turn < settledTurns && !effect.isSeen; turn++) await sleep(settledMs / settledTurns);
  return effect.isSeen;
}

async function endsConnection({ baseUrl }: ConfiguredServer): Promise<boolean> {
  const session = connect(baseUrl);
  const isClosed = await happens(once(session, "goaway"));
  session.destroy();
  return isClosed;
}

async function endsWatch({ baseUrl }: ConfiguredServer): Promise<boolean> {
  const session = connect(baseUrl);
  const header = { ":method": "POST", ":path": "/grpc.health.v1.Health/Watch", "content-type": "application/grpc" };
  const watch = session.request(header);
  watch.on("error", () => {}).end(Buffer.alloc(5));
  const isClosed = await happens(once(watch, "close"));
  session.destroy();
  return isClosed;
}

async function respondsWhileDraining(server: ConfiguredServer): Promise<unknown> {
  const drained = server.drain();
  // Without a delay, the port closes within the next turns.
  await sleep(200);
  const asked = get(server, "/livez").then((response) => response.status);
  const status = await asked.catch(() => "refused");
  await drained;
  return status;
}

/** Returns whether a drain ends although a call's message is never complete. */
async function abortsCalls(server: ConfiguredServer): Promise<boolean> {
  const session = connect(server.baseUrl).on("error", () => {});
  const path = "/plantstore.v1.PlantService/DeletePlant";
  const call = session.request({ ":method": "POST", ":path": path, "content-type": "application/json" });
  call.on("error", () => {}).write("{");
  await once(session, "remoteSettings");
  const drained = server.drain();
  const isAborted = await happens(drained);
  session.destroy();
  await drained;
  return isAborted;
}

const servesMetrics = async ({ admin }: ConfiguredServer): Promise<unknown> =>
  admin && (await fetch(`http://127.0.0.1:${admin.port}/metrics`)).status;

/** Starts the command, because several workers cannot share a store in memory, so they do not start. */
async function listensWith(workers: string): Promise<boolean> {
  const environment = { PORT: "0", DATABASE_URL: "memory:", PLANTSTORE_WORKERS: workers, ...guarded };
  await using server = startCommandLine(["serve"], folder.path, environment);
  const listening = server.find(/"msg":"listening"/).then(() => true);
  return await listening.catch(() => false);
}

/** Compares which records of deletions 4, 2 and 0 hours ago are dropped. */
async function ofRetention(): Promise<Effect> {
  const environment = { DATABASE_URL: `sqlite:${folder.file("kept.db")}` };
  await (await startConfigured(environment)).drain();
  using db = new DatabaseSync(folder.file("kept.db"));
  const record = db.prepare("INSERT INTO deletions VALUES (?, 1, ?, '', '', 1)");
  for (const [seq, hours] of [4, 2, 0].entries()) record.run(seq, Date.now() - hours * 3_600_000);
  const kept = (hours: string): Environment => ({ ...environment, PLANTSTORE_DELETIONS_KEPT_HOURS: hours });
  return [kept("5"), kept("3"), countDropped];
}

async function countDropped(server: ConfiguredServer): Promise<unknown> {
  await server.drain();
  return server.lines().find(({ msg }) => msg === "old deletion records dropped")?.["count"];
}

/** Compares which of two unreachable databases the server reports. */
async function ofDatabaseUrlFile(): Promise<Effect> {
  const [one, two] = [await freePort(), await freePort()];
  const inFile = (port: number): Environment => ({
    DATABASE_URL: undefined,
    DATABASE_URL_FILE: folder.write(String(port), `postgres://127.0.0.1:${port}/plants`),
  });
  const refuses: Effect[2] = async (server) => {
    const isRefused = (): boolean => JSON.stringify(server.lines()).includes(`127.0.0.1:${two}`);
    for (let turn = 0; turn < settledTurns && !isRefused(); turn++) await sleep(settledMs / settledTurns);
    return isRefused();
  };
  return [inFile(one), inFile(two), refuses];
}

async function ofKeysFile(): Promise<Effect> {
  const other = await createSigningKey("ES256", "key");
  const [off = "", on = ""] = [[other], signing.keys].map((keys, at) =>
    folder.write(`keys-${at}`, JSON.stringify({ keys: keys.map(({ jwk }) => jwk) })),
  );
  return ofJwt({ PLANTSTORE_JWT_KEYS_FILE: off }, { PLANTSTORE_JWT_KEYS_FILE: on });
}

const sqlite = { DATABASE_URL: `sqlite:${folder.file("plants.db")}`, ...guarded };
const socket = { HOST: `unix:${folder.file("s")}` };
const enforced = { PLANTSTORE_PROVIDER_SCOPES: "enforced" };
const hashes = folder.write("hashes", `sha256:${createHash("sha256").update(token).digest("hex")} gardener - -\n`);
const aged = { PLANTSTORE_MAX_CONNECTION_AGE_MS: "20" };
const shop = { origin: "https://shop.example" };
const certificates: Effect = [tlsOf("one"), tlsOf("two"), presents];

/** Each setting's effect, or a function that prepares it. A setting without one does not compile. */
// oxfmt-ignore
const effects: Readonly<Record<Exclude<keyof Configuration, "workers">, Effect | (() => Effect | Promise<Effect>)>> = {
  host: [{ ...sqlite, HOST: "127.0.0.1" }, { ...sqlite, HOST: "0.0.0.0" }, ({ address }) => address],
  port: async () => {
    const port = await freePort();
    return [{}, { PORT: String(port) }, (server) => server.port === port];
  },
  socketMode: [{ ...socket, PLANTSTORE_SOCKET_MODE: "600" }, { ...socket, PLANTSTORE_SOCKET_MODE: "604" },
    () => statSync(folder.file("s")).mode & 0o777],
  maxConnectionAgeMs: [{ PLANTSTORE_MAX_CONNECTION_AGE_MS: "3600000" }, aged, endsConnection],
  maxConnectionAgeGraceMs: [{ ...aged, PLANTSTORE_MAX_CONNECTION_AGE_GRACE_MS: "3600000" },
    { ...aged, PLANTSTORE_MAX_CONNECTION_AGE_GRACE_MS: "20" }, endsWatch],
  database: [{ DATABASE_URL: "memory:" }, { DATABASE_URL: `sqlite:${folder.file("new.db")}` },
    () => existsSync(folder.file("new.db"))],
  databaseUrlFile: ofDatabaseUrlFile,
  deletionsKeptHours: ofRetention,
  tokens: [unguarded, guarded, deletes],
  tokenHashesFile: [unguarded, { ...unguarded, PLANTSTORE_TOKEN_HASHES_FILE: hashes }, deletes],
  jwtIssuers: () => ofJwt({ PLANTSTORE_JWT_ISSUERS: "https://other.example", PLANTSTORE_JWT_KEYS_URLS: signing.keysUrl },
    { PLANTSTORE_JWT_KEYS_URLS: signing.keysUrl }),
  jwtAudiences: () => ofJwt({ PLANTSTORE_JWT_AUDIENCES: "https://other.example" }, {}),
  jwtAudienceClaim: () => ofJwt({}, { PLANTSTORE_JWT_AUDIENCE_CLAIM: "client_id" },
    { aud: undefined, client_id: testAudience }),
  jwtKeysUrls: () => ofJwt({ PLANTSTORE_JWT_KEYS_URLS: `${signing.issuer}/other` },
    { PLANTSTORE_JWT_KEYS_URLS: signing.keysUrl }),
  jwtKeysFile: ofKeysFile,
  jwtAlgorithms: () => ofJwt({ PLANTSTORE_JWT_ALGORITHMS: "RS256" }, {}),
  jwtType: () => ofJwt({}, { PLANTSTORE_JWT_TYPE: "at+jwt" }, {}, { typ: "JWT" }),
  providerScopes: () => ofJwt({}, enforced),
  jwtScopeClaims: () => ofJwt(enforced, { ...enforced, PLANTSTORE_JWT_SCOPE_CLAIMS: "permissions" },
    { permissions: ["plants:delete"] }),
  introspectionUrl: () => ofIntrospection({ PLANTSTORE_INTROSPECTION_URL: `${introspecting.issuer}/other` }),
  introspectionClientId: () => ofIntrospection({ PLANTSTORE_INTROSPECTION_CLIENT_ID: "other" }),
  introspectionClientSecretFile: () => ofIntrospection(
    { PLANTSTORE_INTROSPECTION_CLIENT_SECRET_FILE: folder.write("other-secret", "0ther") }),
  introspectionAudiences: () => ofIntrospection({ PLANTSTORE_INTROSPECTION_AUDIENCES: "another" }),
  introspectionSubjectClaim: () => ofIntrospection({ PLANTSTORE_INTROSPECTION_SUBJECT_CLAIM: "client_id" },
    { sub: undefined, client_id: "batch" }),
  publicUrl: [guarded, { ...guarded, PLANTSTORE_PUBLIC_URL: "https://plants.example" },
    async (server) => (await get(server, "/mcp")).headers.get("www-authenticate")],
  docs: [{ PLANTSTORE_DOCS: "closed" }, { PLANTSTORE_DOCS: "open" },
    async (server) => (await get(server, "/openapi.json")).status],
  corsOrigins: [{ PLANTSTORE_CORS_ORIGINS: "https://other.example" }, { PLANTSTORE_CORS_ORIGINS: shop.origin },
    async (server) => (await get(server, "/livez", shop)).headers.get("access-control-allow-origin")],
  mcp: [{ ...guarded, PLANTSTORE_MCP: "off" }, { ...guarded, PLANTSTORE_MCP: "on" },
    async (server) => (await get(server, "/mcp", authorization)).headers.get("allow")],
  trustedProxies: [guarded, proxied, logsClient({ "x-forwarded-for": "192.0.2.1" })],
  proxyFields: [proxied, { ...proxied, PLANTSTORE_PROXY_FIELDS: "forwarded" },
    logsClient({ forwarded: "for=192.0.2.1" })],
  proxyProtocol: [proxied, { ...proxied, PLANTSTORE_PROXY_PROTOCOL: "on" }, async ({ port }) => {
    const client = connectTcp({ port, host: "127.0.0.1" });
    client.write("PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\nGET /livez HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    return (await text(client)).split("\r\n", 1)[0];
  }],
  ratePerPrincipal: [guarded, { ...guarded, PLANTSTORE_RATE_PER_PRINCIPAL: "1" }, refusesOne],
  ratePerAddress: [guarded, { ...guarded, PLANTSTORE_RATE_PER_ADDRESS: "1" }, refusesOne],
  tlsCertFile: certificates,
  tlsKeyFile: certificates,
  requestIdResponses: [{ PLANTSTORE_REQUEST_ID_RESPONSES: "requested" }, { PLANTSTORE_REQUEST_ID_RESPONSES: "always" },
    async (server) => (await get(server, "/livez")).headers.has("x-request-id")],
  logLevel: [{ LOG_LEVEL: "info" }, { LOG_LEVEL: "error" }, logsProbe],
  audit: [{ ...guarded, LOG_LEVEL: "error", PLANTSTORE_AUDIT: "by-level" },
    { ...guarded, LOG_LEVEL: "error", PLANTSTORE_AUDIT: "always" }, logsDeletion],
  logProbes: [{ PLANTSTORE_LOG_PROBES: "off" }, { PLANTSTORE_LOG_PROBES: "on" }, logsProbe],
  drainDelayMs: [{ PLANTSTORE_DRAIN_DELAY_MS: "0" }, { PLANTSTORE_DRAIN_DELAY_MS: "1500" }, respondsWhileDraining],
  drainTimeoutMs: [{ PLANTSTORE_DRAIN_TIMEOUT_MS: "3600000" }, { PLANTSTORE_DRAIN_TIMEOUT_MS: "20" }, abortsCalls],
  adminAddress: [{}, { PLANTSTORE_ADMIN_ADDRESS: "0" }, servesMetrics],
};

test.each(Object.entries(effects))("the setting %s has an effect", async (_, effect) => {
  await compare(...(typeof effect === "function" ? await effect() : effect));
});

test("the setting workers has an effect", async () => {
  expect(new Differs([await listensWith("1"), await listensWith("2")])).toBeDefined();
});
