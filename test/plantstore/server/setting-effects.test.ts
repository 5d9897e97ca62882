import { once } from "node:events";
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { connect } from "node:http2";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import type { Configuration } from "../../../src/plantstore/server/settings.ts";
import { createSigningKey, startIdentityProvider, testAudience } from "../../support/auth/identity-provider.ts";
import { within } from "../../support/deadline.ts";
import { createTempFolder } from "../../support/process/temp-folder.ts";
import { type ConfiguredServer, startConfigured } from "../../support/server/start-configured.ts";

/** Where a test shows what a setting does: a file of test/plantstore/, and words of the name of the test. */
type Place = readonly [file: string, test: string];

/** What shows the effect of each setting; a setting without a row does not compile. */
const effects: Readonly<Record<keyof Configuration, Place | (() => Promise<void>)>> = {
  host: ["server/start-server.test.ts", "the log names the Unix socket that a server listens on"],
  port: ["cli/run-command-line.test.ts", "whose port is in use is refused with the port"],
  socketMode: async () => {
    using folder = createTempFolder();
    await using _ = await startConfigured({ HOST: `unix:${folder.file("s")}`, PLANTSTORE_SOCKET_MODE: "604" });
    expect(statSync(folder.file("s")).mode & 0o777).toBe(0o604);
  },
  workers: ["cli/workers.test.ts", "workers share a port"],
  maxConnectionAgeMs: async () => {
    await using server = await startConfigured({ PLANTSTORE_MAX_CONNECTION_AGE_MS: "20" });
    const session = connect(server.baseUrl);
    await within(once(session, "goaway"), "GOAWAY");
  },
  maxConnectionAgeGraceMs: async () => {
    const ages = { PLANTSTORE_MAX_CONNECTION_AGE_MS: "20", PLANTSTORE_MAX_CONNECTION_AGE_GRACE_MS: "20" };
    await using server = await startConfigured(ages);
    const session = connect(server.baseUrl);
    const watch = session.request({
      ":method": "POST",
      ":path": "/grpc.health.v1.Health/Watch",
      "content-type": "application/grpc",
    });
    watch.on("error", () => {}).end(Buffer.alloc(5));
    await within(once(watch, "close"), "the end of the stream");
  },
  database: ["server/start-server.test.ts", "what a store does by itself is one line of the log each"],
  databaseUrlFile: ["server/database-url.test.ts", "is followed: user and password may change"],
  deletionsKeptHours: async () => {
    using folder = createTempFolder();
    const environment = { DATABASE_URL: `sqlite:${folder.file("plants.db")}` };
    await (await startConfigured(environment)).drain();
    using db = new DatabaseSync(folder.file("plants.db"));
    const record = db.prepare("INSERT INTO deletions VALUES (?, 1, ?, '', '', 1)");
    for (const [seq, hours] of [4, 2, 0].entries()) record.run(seq, Date.now() - hours * 3_600_000);
    const dropped = async (hours: string): Promise<unknown> => {
      await using server = await startConfigured({ ...environment, PLANTSTORE_DELETIONS_KEPT_HOURS: hours });
      await server.drain();
      return server.lines().find(({ msg }) => msg === "deletion records dropped")?.["count"];
    };
    expect([await dropped("5"), await dropped("3"), await dropped("1")]).toEqual([undefined, 1, 1]);
  },
  tokens: ["server/start-server.test.ts", "$variable limits the calls of each $name"],
  tokenHashesFile: ["server/start-server.test.ts", "names the file, the line and what is wrong with it"],
  jwtIssuers: ["server/start-server.test.ts", "takes the provider's tokens, and deletes with them"],
  jwtAudiences: ["server/start-server.test.ts", "work for Keycloak"],
  jwksUrls: ["server/start-server.test.ts", "work for Entra: both of its issuers"],
  jwksFile: async () => {
    using folder = createTempFolder();
    const key = await createSigningKey("ES256", "key");
    using provider = await startIdentityProvider(key);
    provider.answer = (_request, response) => void response.writeHead(503).end();
    writeFileSync(folder.file("keys"), JSON.stringify({ keys: [key.jwk] }));
    const issuer = { PLANTSTORE_JWT_ISSUER: provider.issuer, PLANTSTORE_JWT_AUDIENCE: testAudience };
    await using server = await startConfigured({ ...issuer, PLANTSTORE_JWKS_FILE: folder.file("keys") });
    expect(await deletePlant(server, await provider.sign())).toBe(204);
  },
  jwtAlgorithms: async () => {
    using provider = await startIdentityProvider(await createSigningKey("ES256", "key"));
    const issuer = { PLANTSTORE_JWT_ISSUER: provider.issuer, PLANTSTORE_JWT_AUDIENCE: testAudience };
    for (const [algorithms, want] of [
      ["RS256", 400],
      ["RS256,ES256", 204],
    ] as const) {
      await using server = await startConfigured({ ...issuer, PLANTSTORE_JWT_ALGORITHMS: algorithms });
      expect([algorithms, await deletePlant(server, await provider.sign())]).toEqual([algorithms, want]);
    }
  },
  jwtType: ["server/start-server.test.ts", "work for Auth0"],
  providerScopes: ["server/start-server.test.ts", "demands the scope where scopes are demanded"],
  jwtScopeClaims: ["server/start-server.test.ts", "work for Entra's daemons"],
  introspectionUrl: ["server/start-server.test.ts", "work for opaque tokens"],
  introspectionClientId: ["server/start-server.test.ts", "work for opaque tokens"],
  introspectionClientSecretFile: ["server/start-server.test.ts", "work for opaque tokens"],
  introspectionAudiences: async () => {
    using folder = createTempFolder();
    writeFileSync(folder.file("secret"), "s3cret");
    using provider = await startIdentityProvider(await createSigningKey("ES256", "key"));
    provider.answer = (_request, response) => void response.end('{"active":true,"sub":"ada","aud":"plantstore"}');
    for (const [audience, want] of [
      ["another", 400],
      ["another,plantstore", 204],
    ] as const) {
      await using server = await startConfigured({
        PLANTSTORE_INTROSPECTION_URL: `${provider.issuer}/introspect`,
        PLANTSTORE_INTROSPECTION_CLIENT_ID: "plantstore",
        PLANTSTORE_INTROSPECTION_CLIENT_SECRET_FILE: folder.file("secret"),
        PLANTSTORE_INTROSPECTION_AUDIENCE: audience,
      });
      expect([audience, await deletePlant(server, "opaque")]).toEqual([audience, want]);
    }
  },
  publicUrl: ["server/start-server.test.ts", "stands at the root of the host, also where the service has a path"],
  docs: async () => {
    await using server = await startConfigured({ PLANTSTORE_DOCS: "open" });
    expect((await get(server, "/openapi.json")).status).toBe(200);
  },
  corsOrigins: async () => {
    await using server = await startConfigured({ PLANTSTORE_CORS_ORIGINS: "https://shop.example" });
    const allowed = async (origin: string): Promise<string | null> =>
      (await get(server, "/livez", { origin })).headers.get("access-control-allow-origin");
    expect([await allowed("https://shop.example"), await allowed("https://other.example")]).toEqual([
      "https://shop.example",
      null,
    ]);
  },
  trustedProxies: ["server/start-server.test.ts", "behind a trusted proxy"],
  proxyFields: ["server/start-server.test.ts", "they are read there too where it is said"],
  proxyProtocol: ["server/start-server.test.ts", "no fields are read where it passes on connections"],
  ratePerPrincipal: ["server/start-server.test.ts", "$variable limits the calls of each $name"],
  ratePerAddress: ["server/start-server.test.ts", "$variable limits the calls of each $name"],
  tlsCertFile: ["server/certificate.test.ts", "is agreed on by ALPN"],
  tlsKeyFile: ["server/certificate.test.ts", "a key that is not the certificate's is a wrong configuration"],
  requestIdAnswers: async () => {
    for (const [answers, want] of [
      ["asked", false],
      ["always", true],
    ] as const) {
      await using server = await startConfigured({ PLANTSTORE_REQUEST_ID_ANSWERS: answers });
      expect([answers, (await get(server, "/livez")).headers.has("x-request-id")]).toEqual([answers, want]);
    }
  },
  logLevel: ["server/audit.test.ts", "at LOG_LEVEL=$level and PLANTSTORE_AUDIT=$audit has its lines"],
  audit: ["server/audit.test.ts", "at LOG_LEVEL=$level and PLANTSTORE_AUDIT=$audit has its lines"],
  probeLines: ["server/start-server.test.ts", "PLANTSTORE_LOG_PROBES=$setting decides whether probes are logged"],
  drainDelayMs: ["cli/serve.test.ts", "a draining server is not ready, serves on until the delay is over"],
  drainTimeoutMs: ["server/create-plant-server.test.ts", "is cut when the time for the drain is over"],
  adminAddress: ["cli/serve.test.ts", "serves metrics where it is asked to"],
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

async function deletePlant({ baseUrl }: ConfiguredServer, token: string): Promise<number> {
  const headers = { connection: "close", authorization: `Bearer ${token}` };
  const { status, body } = await fetch(`${baseUrl}/plants/1`, { method: "DELETE", headers });
  await body?.cancel();
  return status;
}

describe.each(Object.entries(effects))("the setting %s", (_key, effect) => {
  if (typeof effect === "function") {
    test("has its effect", effect);
  } else {
    const [file, name] = effect;
    test(`has its effect in ${file}`, () => {
      const source = readFileSync(join(import.meta.dirname, "..", file), "utf8");
      expect(source).toContain(name);
    });
  }
});
