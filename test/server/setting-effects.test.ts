import { once } from "node:events";
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { connect } from "node:http2";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import type { ConfigurationSources } from "../../src/server/index.ts";
import { flagOf } from "../../src/server/setting-readers.ts";
import { type Configuration, settings } from "../../src/server/settings.ts";
import {
  createSigningKey,
  startIdentityProvider,
  testAudience,
} from "../../packages/testing/src/auth/identity-provider.ts";
import { createTempFolder } from "../../packages/testing/src/process/temp-folder.ts";
import { statusOfLongTarget } from "../support/server/long-target.ts";
import { type ConfiguredServer, startConfigured } from "../support/server/start-configured.ts";

type Environment = ConfigurationSources["environment"];

/** Two servers whose observations must differ. */
interface Comparison {
  readonly off: Environment;
  readonly on: Environment;
  readonly observe: (server: ConfiguredServer) => Promise<unknown>;
}

/** The result of {@link compare}. No other function returns it, so that no test case can omit the comparison. */
class Differs {
  readonly #observed: readonly unknown[];

  constructor(observed: readonly unknown[]) {
    this.#observed = observed;
    expect(this.#observed[0]).not.toEqual(this.#observed[1]);
  }
}

/** Starts one server after the other, and fails unless they differ. */
async function compare({ off, on, observe }: Comparison): Promise<Differs> {
  const observed: unknown[] = [];
  for (const environment of [off, on]) {
    await using server = await startConfigured(environment);
    observed.push(await observe(server));
  }
  return new Differs(observed);
}

// Milliseconds to wait for the effect of a limit of 20 ms.
const settledMs = 1_500;

/** A test that covers a setting: a file of test/, and a part of the name of a test that sets it. */
type TestReference = readonly [file: string, test: string];

/** The test of each setting's effect. A setting without one does not compile. */
const effects: Readonly<Record<keyof Configuration, TestReference | (() => Promise<Differs>)>> = {
  host: ["server/start-server.test.ts", "the log names the Unix socket that a server listens on"],
  port: ["command/run-command-line.test.ts", "suggests another port when the port is in use"],
  socketMode: async () => {
    using folder = createTempFolder();
    const host = { HOST: `unix:${folder.file("s")}` };
    return await compare({
      off: { ...host, PLANTSTORE_SOCKET_MODE: "600" },
      on: { ...host, PLANTSTORE_SOCKET_MODE: "604" },
      observe: () => Promise.resolve(statSync(folder.file("s")).mode & 0o777),
    });
  },
  workers: ["command/workers.test.ts", "workers share a port"],
  maxConnectionAgeMs: () =>
    compare({
      off: { PLANTSTORE_MAX_CONNECTION_AGE_MS: "3600000" },
      on: { PLANTSTORE_MAX_CONNECTION_AGE_MS: "20" },
      observe: async (server) => {
        const session = connect(server.baseUrl);
        const closed = once(session, "goaway").then(() => true);
        const isClosed = await Promise.race([closed, sleep(settledMs).then(() => false)]);
        session.destroy();
        return isClosed;
      },
    }),
  maxConnectionAgeGraceMs: () =>
    compare({
      off: { PLANTSTORE_MAX_CONNECTION_AGE_MS: "20", PLANTSTORE_MAX_CONNECTION_AGE_GRACE_MS: "3600000" },
      on: { PLANTSTORE_MAX_CONNECTION_AGE_MS: "20", PLANTSTORE_MAX_CONNECTION_AGE_GRACE_MS: "20" },
      observe: async (server) => {
        const session = connect(server.baseUrl);
        const watch = session.request({
          ":method": "POST",
          ":path": "/grpc.health.v1.Health/Watch",
          "content-type": "application/grpc",
        });
        watch.on("error", () => {}).end(Buffer.alloc(5));
        const closed = once(watch, "close").then(() => true);
        const isClosed = await Promise.race([closed, sleep(settledMs).then(() => false)]);
        session.destroy();
        return isClosed;
      },
    }),
  httpEngine: async () => {
    const off = { PLANTSTORE_HTTP_ENGINE: "plantstore", PLANTSTORE_ADMIN_ADDRESS: "0" };
    const on = { ...off, PLANTSTORE_HTTP_ENGINE: "node" };
    await compare({ off, on, observe: ({ baseUrl }) => statusOfLongTarget(baseUrl) });
    return await compare({ off, on, observe: (server) => statusOfLongTarget(adminUrlOf(server)) });
  },
  database: ["server/start-server.test.ts", "a server logs each maintenance task of its store in one line"],
  databaseUrlFile: ["server/database-url.test.ts", "may change its user and password"],
  deletionsKeptHours: async () => {
    using folder = createTempFolder();
    const environment = { DATABASE_URL: `sqlite:${folder.file("plants.db")}` };
    await (await startConfigured(environment)).drain();
    using db = new DatabaseSync(folder.file("plants.db"));
    const record = db.prepare("INSERT INTO deletions VALUES (?, 1, ?, '', '', 1)");
    for (const [seq, hours] of [4, 2, 0].entries()) record.run(seq, Date.now() - hours * 3_600_000);
    return await compare({
      off: { ...environment, PLANTSTORE_DELETIONS_KEPT_HOURS: "5" },
      on: { ...environment, PLANTSTORE_DELETIONS_KEPT_HOURS: "3" },
      observe: async (server) => {
        await server.drain();
        return server.lines().find(({ msg }) => msg === "old deletion records dropped")?.["count"];
      },
    });
  },
  tokens: ["server/start-server.test.ts", "$variable limits the calls of each $name"],
  tokenHashesFile: [
    "server/start-server.test.ts",
    "reports the file, line and problem of an invalid token hashes file",
  ],
  jwtIssuers: ["server/start-server.test.ts", "accepts tokens of the provider"],
  jwtAudiences: ["server/start-server.test.ts", "work for Keycloak"],
  jwksUrls: ["server/start-server.test.ts", "work for Entra with both of its issuers"],
  jwksFile: async () => {
    using folder = createTempFolder();
    const [key, other] = [await createSigningKey("ES256", "key"), await createSigningKey("ES256", "key")];
    using provider = await startIdentityProvider(key);
    provider.answer = (_request, response) => void response.writeHead(503).end();
    writeFileSync(folder.file("other"), JSON.stringify({ keys: [other.jwk] }));
    writeFileSync(folder.file("keys"), JSON.stringify({ keys: [key.jwk] }));
    const issuer = { PLANTSTORE_JWT_ISSUER: provider.issuer, PLANTSTORE_JWT_AUDIENCE: testAudience };
    return await compare({
      off: { ...issuer, PLANTSTORE_JWKS_FILE: folder.file("other") },
      on: { ...issuer, PLANTSTORE_JWKS_FILE: folder.file("keys") },
      observe: async (server) => await deletePlant(server, await provider.sign()),
    });
  },
  jwtAlgorithms: async () => {
    using provider = await startIdentityProvider(await createSigningKey("ES256", "key"));
    const issuer = { PLANTSTORE_JWT_ISSUER: provider.issuer, PLANTSTORE_JWT_AUDIENCE: testAudience };
    return await compare({
      off: { ...issuer, PLANTSTORE_JWT_ALGORITHMS: "RS256" },
      on: { ...issuer, PLANTSTORE_JWT_ALGORITHMS: "RS256,ES256" },
      observe: async (server) => await deletePlant(server, await provider.sign()),
    });
  },
  jwtType: ["server/start-server.test.ts", "work for Auth0"],
  providerScopes: ["server/start-server.test.ts", "requires the scope with PLANTSTORE_PROVIDER_SCOPES=enforced"],
  jwtScopeClaims: ["server/start-server.test.ts", "work for Entra daemons"],
  introspectionUrl: ["server/start-server.test.ts", "work for opaque tokens"],
  introspectionClientId: ["server/start-server.test.ts", "work for opaque tokens"],
  introspectionClientSecretFile: ["server/start-server.test.ts", "work for opaque tokens"],
  jwtAudienceClaim: async () => {
    using provider = await startIdentityProvider(await createSigningKey("ES256", "key"));
    const issuer = { PLANTSTORE_JWT_ISSUER: provider.issuer, PLANTSTORE_JWT_AUDIENCE: testAudience };
    return await compare({
      off: issuer,
      on: { ...issuer, PLANTSTORE_JWT_AUDIENCE_CLAIM: "client_id" },
      observe: async (server) =>
        await deletePlant(server, await provider.sign({ aud: undefined, client_id: testAudience })),
    });
  },
  introspectionSubjectClaim: async () => {
    using folder = createTempFolder();
    writeFileSync(folder.file("secret"), "s3cret");
    using provider = await startIdentityProvider(await createSigningKey("ES256", "key"));
    provider.answer = (_request, response) => void response.end('{"active":true,"client_id":"batch"}');
    const introspection = {
      PLANTSTORE_INTROSPECTION_URL: `${provider.issuer}/introspect`,
      PLANTSTORE_INTROSPECTION_CLIENT_ID: "plantstore",
      PLANTSTORE_INTROSPECTION_CLIENT_SECRET_FILE: folder.file("secret"),
    };
    return await compare({
      off: introspection,
      on: { ...introspection, PLANTSTORE_INTROSPECTION_SUBJECT_CLAIM: "client_id" },
      observe: (server) => deletePlant(server, "opaque"),
    });
  },
  introspectionAudiences: async () => {
    using folder = createTempFolder();
    writeFileSync(folder.file("secret"), "s3cret");
    using provider = await startIdentityProvider(await createSigningKey("ES256", "key"));
    provider.answer = (_request, response) => void response.end('{"active":true,"sub":"ada","aud":"plantstore"}');
    const introspection = {
      PLANTSTORE_INTROSPECTION_URL: `${provider.issuer}/introspect`,
      PLANTSTORE_INTROSPECTION_CLIENT_ID: "plantstore",
      PLANTSTORE_INTROSPECTION_CLIENT_SECRET_FILE: folder.file("secret"),
    };
    return await compare({
      off: { ...introspection, PLANTSTORE_INTROSPECTION_AUDIENCE: "another" },
      on: { ...introspection, PLANTSTORE_INTROSPECTION_AUDIENCE: "another,plantstore" },
      observe: (server) => deletePlant(server, "opaque"),
    });
  },
  publicUrl: ["server/start-server.test.ts", "is at the root of the host when the service has a path"],
  docs: () =>
    compare({
      off: { PLANTSTORE_DOCS: "closed" },
      on: { PLANTSTORE_DOCS: "open" },
      observe: async (server) => (await get(server, "/openapi.json")).status,
    }),
  corsOrigins: () =>
    compare({
      off: { PLANTSTORE_CORS_ORIGINS: "https://other.example" },
      on: { PLANTSTORE_CORS_ORIGINS: "https://shop.example" },
      observe: async (server) =>
        (await get(server, "/livez", { origin: "https://shop.example" })).headers.get("access-control-allow-origin"),
    }),
  mcp: () =>
    compare({
      off: { PLANTSTORE_MCP: "off", PLANTSTORE_TOKENS: "token-of-mcp-0123" },
      on: { PLANTSTORE_MCP: "on", PLANTSTORE_TOKENS: "token-of-mcp-0123" },
      observe: async (server) =>
        (await get(server, "/mcp", { authorization: "Bearer token-of-mcp-0123" })).headers.get("allow"),
    }),
  trustedProxies: ["server/start-server.test.ts", "behind a trusted proxy"],
  proxyFields: ["server/start-server.test.ts", "forwarded fields are read with the PROXY protocol if configured"],
  proxyProtocol: ["server/start-server.test.ts", "forwarded fields are ignored with the PROXY protocol"],
  ratePerPrincipal: ["server/start-server.test.ts", "$variable limits the calls of each $name"],
  ratePerAddress: ["server/start-server.test.ts", "$variable limits the calls of each $name"],
  tlsCertFile: ["server/certificate.test.ts", "a TLS server negotiates %s by ALPN"],
  tlsKeyFile: ["server/certificate.test.ts", "a server does not start with a key of another certificate"],
  requestIdResponses: () =>
    compare({
      off: { PLANTSTORE_REQUEST_ID_RESPONSES: "requested" },
      on: { PLANTSTORE_REQUEST_ID_RESPONSES: "always" },
      observe: async (server) => (await get(server, "/livez")).headers.has("x-request-id"),
    }),
  logLevel: ["server/audit.test.ts", "has $want with LOG_LEVEL=$level and PLANTSTORE_AUDIT=$audit"],
  audit: ["server/audit.test.ts", "has $want with LOG_LEVEL=$level and PLANTSTORE_AUDIT=$audit"],
  logProbes: ["server/start-server.test.ts", "PLANTSTORE_LOG_PROBES=$setting controls whether probes are logged"],
  drainDelayMs: ["command/serve.test.ts", "a draining server is not ready, keeps serving during the delay"],
  drainTimeoutMs: () =>
    compare({
      off: { PLANTSTORE_DRAIN_TIMEOUT_MS: "3600000" },
      on: { PLANTSTORE_DRAIN_TIMEOUT_MS: "20" },
      observe: async (server) => {
        const session = connect(server.baseUrl);
        session.on("error", () => {});
        const call = session.request({
          ":method": "POST",
          ":path": "/plantstore.v1.PlantService/DeletePlant",
          "content-type": "application/json",
        });
        // A call whose message is never complete.
        call.on("error", () => {}).write("{");
        await once(session, "remoteSettings");
        const drained = server.drain();
        const isAborted = await Promise.race([drained.then(() => true), sleep(settledMs).then(() => false)]);
        session.destroy();
        await drained;
        return isAborted;
      },
    }),
  adminAddress: ["command/serve.test.ts", "serves metrics on the configured address"],
};

async function get(
  { baseUrl }: ConfiguredServer,
  path: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<Response> {
  const response = await fetch(baseUrl + path, { headers: { connection: "close", ...headers } });
  await response.body?.cancel();
  return response;
}

function adminUrlOf(server: ConfiguredServer): string {
  const line = server.lines().find(({ msg }) => msg === "serving metrics");
  return `http://127.0.0.1:${String(line?.["port"])}`;
}

async function deletePlant({ baseUrl }: ConfiguredServer, token: string): Promise<number> {
  const headers = { connection: "close", authorization: `Bearer ${token}` };
  const { status, body } = await fetch(`${baseUrl}/plants/1`, { method: "DELETE", headers });
  await body?.cancel();
  return status;
}

describe.each(Object.entries(effects))("the setting %s", (key, effect) => {
  if (typeof effect === "function") {
    test("changes the behavior of the server", async () => {
      await expect(effect()).resolves.toBeInstanceOf(Differs);
    });
  } else {
    const [file, name] = effect;
    test(`is covered by a test in ${file}`, () => {
      const source = readFileSync(join(import.meta.dirname, "..", file), "utf8");
      expect(testNamed(source, name)).toMatch(namesOf(key));
    });
  }
});

/** Returns the source of a test by a part of its name, with the functions of its file that it calls. */
function testNamed(source: string, name: string): string {
  const parts = source.split(/^(?=(?:test|describe|(?:async )?function)\b)/m);
  const found = parts.find((part) => !/^(?:async )?function/.test(part) && part.includes(name)) ?? "";
  const called = parts.filter((part) => {
    const [, helper] = /^(?:async )?function (\w+)/.exec(part) ?? [];
    return helper !== undefined && found.includes(`${helper}(`);
  });
  return [found, ...called].join("\n");
}

/** Matches the variable or flag of a setting. */
function namesOf(key: string): RegExp {
  const [, setting] = Object.entries(settings).find(([name]) => name === key) ?? [];
  const flag = setting && flagOf(setting);
  return new RegExp(`\\b${setting?.variable}\\b${flag === undefined ? "" : `|--${flag}\\b`}`);
}
