import { existsSync, statSync, writeFileSync } from "node:fs";
import { once } from "node:events";
import { connect } from "node:http2";
import { connect as connectTcp } from "node:net";
import { DatabaseSync } from "node:sqlite";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { connect as connectTls } from "node:tls";
import { expect, test } from "vitest";
import { createCertificate } from "../../../../protoport/testing/src/http/certificate.ts";
import { freePort } from "../../../../protoport/testing/src/process/free-port.ts";
import { createTempFolder } from "../../../../protoport/testing/src/process/temp-folder.ts";
import { startCommandLine } from "../../../support/process/command-line.ts";
import { type ConfiguredServer, startConfigured } from "../../../support/server/start-configured.ts";
import { Differs } from "../../../../protoport/testing/src/comparison.ts";
import { compare, deletePlant, type Effects, type Environment, get, settledMs } from "./effects/comparison.ts";
import { credentialEffects } from "./effects/credential-effects.ts";

// Starts the server with two values for each setting, and compares what a caller or an operator observes. If the server
// read a setting but did not use it, both observations would be equal.

const token = "token-of-the-effects-test";

/** Compares the certificates that the server presents. */
async function compareCertificates(): Promise<Differs> {
  using folder = createTempFolder();
  const [off = {}, on = {}] = ["one", "two"].map((name) => {
    const { cert, key } = createCertificate(name);
    writeFileSync(folder.file(`${name}.pem`), cert);
    writeFileSync(folder.file(`${name}.key`), key);
    return { TLS_CERT_FILE: folder.file(`${name}.pem`), TLS_KEY_FILE: folder.file(`${name}.key`) };
  });
  return await compare(off, on, async ({ port }) => {
    const socket = connectTls({ port, host: "127.0.0.1", rejectUnauthorized: false });
    await once(socket, "secureConnect");
    const { subject } = socket.getPeerCertificate();
    socket.destroy();
    return subject.CN;
  });
}

/** Compares whether a call by a caller who makes several is refused, without and with a rate. */
function compareRates(rate: Environment): Promise<Differs> {
  return compare({ PLANTSTORE_TOKENS: token }, { PLANTSTORE_TOKENS: token, ...rate }, async (server) => {
    for (let call = 0; call < 5; call++) await deletePlant(server, token);
    await server.drain();
    return server.lines().some((line) => JSON.stringify(line).includes("ResourceExhausted"));
  });
}

/** Returns whether a deletion's log has the client's address. */
async function isClientLogged(server: ConfiguredServer, fields: Readonly<Record<string, string>>): Promise<boolean> {
  await deletePlant(server, token, fields);
  await server.drain();
  return server.lines().some((line) => JSON.stringify(line).includes("192.0.2.1"));
}

function adminUrlOf(server: ConfiguredServer): string {
  const line = server.lines().find(({ msg }) => msg === "serving metrics");
  return `http://127.0.0.1:${String(line?.["port"])}`;
}

/** Each setting's comparison. A setting without one does not compile. */
const effects: Effects = {
  ...credentialEffects,
  host: async () => {
    using folder = createTempFolder();
    const exposed = { DATABASE_URL: `sqlite:${folder.file("plants.db")}`, PLANTSTORE_TOKENS: token };
    await compare({ ...exposed, HOST: "127.0.0.1" }, { ...exposed, HOST: "0.0.0.0" }, ({ address }) => address);
    return await compare({ HOST: "127.0.0.1" }, { HOST: `unix:${folder.file("s")}` }, () =>
      existsSync(folder.file("s")),
    );
  },
  port: async () => {
    const port = await freePort();
    return await compare({}, { PORT: String(port) }, (server) => server.port === port);
  },
  socketMode: async () => {
    using folder = createTempFolder();
    const host = { HOST: `unix:${folder.file("s")}` };
    return await compare(
      { ...host, PLANTSTORE_SOCKET_MODE: "600" },
      { ...host, PLANTSTORE_SOCKET_MODE: "604" },
      () => statSync(folder.file("s")).mode & 0o777,
    );
  },
  workers: async () => {
    using folder = createTempFolder();
    const observed: unknown[] = [];
    for (const workers of ["1", "2"]) {
      await using server = startCommandLine(["serve"], folder.path, {
        PORT: "0",
        PLANTSTORE_WORKERS: workers,
        DATABASE_URL: "memory:",
        PLANTSTORE_TOKENS: token,
      });
      const listens = server.find(/"msg":"listening"/).then(
        () => true,
        () => false,
      );
      // Several workers cannot share a store in memory, so they do not start.
      observed.push(await listens);
    }
    return new Differs(observed);
  },
  maxConnectionAgeMs: () =>
    compare(
      { PLANTSTORE_MAX_CONNECTION_AGE_MS: "3600000" },
      { PLANTSTORE_MAX_CONNECTION_AGE_MS: "20" },
      async (server) => {
        const session = connect(server.baseUrl);
        const closed = once(session, "goaway").then(() => true);
        const isClosed = await Promise.race([closed, sleep(settledMs).then(() => false)]);
        session.destroy();
        return isClosed;
      },
    ),
  maxConnectionAgeGraceMs: () =>
    compare(
      { PLANTSTORE_MAX_CONNECTION_AGE_MS: "20", PLANTSTORE_MAX_CONNECTION_AGE_GRACE_MS: "3600000" },
      { PLANTSTORE_MAX_CONNECTION_AGE_MS: "20", PLANTSTORE_MAX_CONNECTION_AGE_GRACE_MS: "20" },
      async (server) => {
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
    ),
  database: async () => {
    using folder = createTempFolder();
    return await compare({ DATABASE_URL: "memory:" }, { DATABASE_URL: `sqlite:${folder.file("plants.db")}` }, () =>
      existsSync(folder.file("plants.db")),
    );
  },
  databaseUrlFile: async () => {
    using folder = createTempFolder();
    const [one, two] = [await freePort(), await freePort()];
    for (const port of [one, two]) writeFileSync(folder.file(String(port)), `postgres://127.0.0.1:${port}/plants`);
    return await compare(
      { DATABASE_URL: undefined, DATABASE_URL_FILE: folder.file(String(one)) },
      { DATABASE_URL: undefined, DATABASE_URL_FILE: folder.file(String(two)) },
      async (server) => {
        const isRefused = (): boolean => JSON.stringify(server.lines()).includes(`127.0.0.1:${two}`);
        const endMs = performance.now() + settledMs;
        while (!isRefused() && performance.now() < endMs) await sleep(10);
        return isRefused();
      },
    );
  },
  deletionsKeptHours: async () => {
    using folder = createTempFolder();
    const environment = { DATABASE_URL: `sqlite:${folder.file("plants.db")}` };
    await (await startConfigured(environment)).drain();
    using db = new DatabaseSync(folder.file("plants.db"));
    const record = db.prepare("INSERT INTO deletions VALUES (?, 1, ?, '', '', 1)");
    for (const [seq, hours] of [4, 2, 0].entries()) record.run(seq, Date.now() - hours * 3_600_000);
    return await compare(
      { ...environment, PLANTSTORE_DELETIONS_KEPT_HOURS: "5" },
      { ...environment, PLANTSTORE_DELETIONS_KEPT_HOURS: "3" },
      async (server) => {
        await server.drain();
        return server.lines().find(({ msg }) => msg === "old deletion records dropped")?.["count"];
      },
    );
  },
  docs: () =>
    compare(
      { PLANTSTORE_DOCS: "closed" },
      { PLANTSTORE_DOCS: "open" },
      async (server) => (await get(server, "/openapi.json")).status,
    ),
  corsOrigins: () =>
    compare(
      { PLANTSTORE_CORS_ORIGINS: "https://other.example" },
      { PLANTSTORE_CORS_ORIGINS: "https://shop.example" },
      async (server) =>
        (await get(server, "/livez", { origin: "https://shop.example" })).headers.get("access-control-allow-origin"),
    ),
  mcp: () =>
    compare(
      { PLANTSTORE_MCP: "off", PLANTSTORE_TOKENS: "token-of-mcp-0123" },
      { PLANTSTORE_MCP: "on", PLANTSTORE_TOKENS: "token-of-mcp-0123" },
      async (server) => (await get(server, "/mcp", { authorization: "Bearer token-of-mcp-0123" })).headers.get("allow"),
    ),
  trustedProxies: () =>
    compare(
      { PLANTSTORE_TOKENS: token },
      { PLANTSTORE_TOKENS: token, PLANTSTORE_TRUSTED_PROXIES: "127.0.0.1" },
      (server) => isClientLogged(server, { "x-forwarded-for": "192.0.2.1" }),
    ),
  proxyFields: () => {
    const on = { PLANTSTORE_TOKENS: token, PLANTSTORE_TRUSTED_PROXIES: "127.0.0.1" };
    return compare(on, { ...on, PLANTSTORE_PROXY_FIELDS: "forwarded" }, (server) =>
      isClientLogged(server, { forwarded: "for=192.0.2.1" }),
    );
  },
  proxyProtocol: () => {
    const on = { PLANTSTORE_TOKENS: token, PLANTSTORE_TRUSTED_PROXIES: "127.0.0.1" };
    return compare(on, { ...on, PLANTSTORE_PROXY_PROTOCOL: "on" }, async ({ port }) => {
      const socket = connectTcp({ port, host: "127.0.0.1" });
      socket.write("PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\nGET /livez HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
      return (await text(socket)).split("\r\n", 1)[0];
    });
  },
  ratePerPrincipal: () => compareRates({ PLANTSTORE_RATE_PER_PRINCIPAL: "1" }),
  ratePerAddress: () => compareRates({ PLANTSTORE_RATE_PER_ADDRESS: "1" }),
  tlsCertFile: compareCertificates,
  tlsKeyFile: compareCertificates,
  requestIdResponses: () =>
    compare(
      { PLANTSTORE_REQUEST_ID_RESPONSES: "requested" },
      { PLANTSTORE_REQUEST_ID_RESPONSES: "always" },
      async (server) => (await get(server, "/livez")).headers.has("x-request-id"),
    ),
  logLevel: () =>
    compare({ LOG_LEVEL: "info" }, { LOG_LEVEL: "error" }, async (server) => {
      await get(server, "/livez");
      return server.lines().length > 0;
    }),
  audit: () => {
    const off = { LOG_LEVEL: "error", PLANTSTORE_TOKENS: token };
    return compare({ ...off, PLANTSTORE_AUDIT: "by-level" }, { ...off, PLANTSTORE_AUDIT: "always" }, async (server) => {
      await deletePlant(server, token);
      await server.drain();
      return server.lines().length > 0;
    });
  },
  logProbes: () =>
    compare({ PLANTSTORE_LOG_PROBES: "off" }, { PLANTSTORE_LOG_PROBES: "on" }, async (server) => {
      await get(server, "/livez");
      await server.drain();
      return server.lines().some((line) => JSON.stringify(line).includes("/livez"));
    }),
  drainDelayMs: () =>
    compare({ PLANTSTORE_DRAIN_DELAY_MS: "0" }, { PLANTSTORE_DRAIN_DELAY_MS: "1500" }, async (server) => {
      const drained = server.drain();
      // Without a delay, the port closes within the next turns.
      await sleep(200);
      const status = await get(server, "/livez").then(
        (response) => response.status,
        () => "refused",
      );
      await drained;
      return status;
    }),
  drainTimeoutMs: () =>
    compare({ PLANTSTORE_DRAIN_TIMEOUT_MS: "3600000" }, { PLANTSTORE_DRAIN_TIMEOUT_MS: "20" }, async (server) => {
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
    }),
  adminAddress: () =>
    compare(
      {},
      { PLANTSTORE_ADMIN_ADDRESS: "0" },
      async (server) => (await fetch(`${adminUrlOf(server)}/metrics`).catch(() => undefined))?.status,
    ),
};

test.each(Object.entries(effects))("the setting %s has an effect", { timeout: 20_000 }, async (_, comparison) => {
  await expect(comparison()).resolves.toBeInstanceOf(Differs);
});
