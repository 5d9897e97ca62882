import { fileURLToPath } from "node:url";
import { writeFileSync } from "node:fs";
import { afterAll, expect, test } from "vitest";
import { readConfiguration } from "../../../src/plantstore/server/configuration.ts";
import type { Configuration } from "../../../src/plantstore/server/settings.ts";
import { problemsOf } from "../../support/server/problems-of.ts";
import { createTempFolder } from "../../support/process/temp-folder.ts";

type Texts = Record<string, string>;

const minimal: Texts = { DATABASE_URL: "memory:" };
const someFile = fileURLToPath(import.meta.url);

const folder = createTempFolder();
afterAll(() => folder[Symbol.dispose]());
const databaseUrl = "postgres://ann:secret@db/p";
const databaseUrlFile = folder.file("url");
writeFileSync(databaseUrlFile, `${databaseUrl}\n`);
const otherUrlFile = folder.file("other-url");
writeFileSync(otherUrlFile, "memory:");

function configurationOf(environment: Texts, flags: Texts = {}): Configuration {
  return readConfiguration({ environment, flags });
}

test("what is not given has its default", () => {
  expect(configurationOf(minimal)).toEqual({
    host: "127.0.0.1",
    port: 8080,
    socketMode: 0o660,
    workers: 1,
    database: { kind: "memory" },
    deletionsKeptHours: 2160,
    tokens: undefined,
    tokenHashesFile: undefined,
    jwtIssuers: undefined,
    jwtAudiences: undefined,
    jwksUrls: undefined,
    jwksFile: undefined,
    jwtAlgorithms: ["RS256", "PS256", "ES256", "EdDSA"],
    jwtType: "any",
    providerScopes: "ignored",
    jwtScopeClaims: ["scope", "scp"],
    introspectionUrl: undefined,
    introspectionClientId: undefined,
    introspectionClientSecretFile: undefined,
    introspectionAudiences: undefined,
    publicUrl: undefined,
    docs: "closed",
    trustedProxies: undefined,
    proxyFields: undefined,
    proxyProtocol: "off",
    ratePerPrincipal: undefined,
    ratePerAddress: undefined,
    tlsCertFile: undefined,
    tlsKeyFile: undefined,
    requestIdAnswers: "asked",
    logLevel: "info",
    audit: "always",
    probeLines: "on",
    drainDelayMs: 5000,
    drainTimeoutMs: 20_000,
  });
});

test.each<{ name: string; environment: Texts; flags?: Texts; want: Partial<Configuration> }>([
  { name: "a variable is read", environment: { PORT: "9000" }, want: { port: 9000 } },
  { name: "a flag beats the variable", environment: { PORT: "9000" }, flags: { port: "9001" }, want: { port: 9001 } },
  {
    name: "a flag beats even a bad variable",
    environment: { PORT: "x" },
    flags: { port: "9001" },
    want: { port: 9001 },
  },
  { name: "an empty variable is not set", environment: { PORT: "" }, want: { port: 8080 } },
  { name: "port 0 takes a free port", environment: { PORT: "0" }, want: { port: 0 } },
  {
    name: "an SQLite path is kept as it is",
    environment: { DATABASE_URL: "sqlite:/var/lib/p l.db" },
    want: { database: { kind: "sqlite", path: "/var/lib/p l.db" } },
  },
  {
    name: "an SQLite path may look like a URL",
    environment: { DATABASE_URL: "sqlite:postgres://plants.db" },
    want: { database: { kind: "sqlite", path: "postgres://plants.db" } },
  },
  {
    name: "a file that can be read is taken",
    environment: { PLANTSTORE_TOKEN_HASHES_FILE: someFile },
    want: { tokenHashesFile: someFile },
  },
  { name: "an IPv6 address is a host", environment: { HOST: "::1" }, want: { host: "::1" } },
  {
    name: "a path of a Unix socket is a host",
    environment: { HOST: "unix:/run/p l/http.sock", PLANTSTORE_SOCKET_MODE: "600" },
    want: { host: "unix:/run/p l/http.sock", socketMode: 0o600 },
  },
  {
    name: "a Unix socket is for owner and group, and needs no credential to be sure of",
    environment: { HOST: "unix:s", DATABASE_URL: "memory:" },
    want: { host: "unix:s", socketMode: 0o660, database: { kind: "memory" } },
  },
  {
    name: "the public URL may have a path",
    environment: { PLANTSTORE_PUBLIC_URL: "https://x.example/api" },
    want: { publicUrl: new URL("https://x.example/api") },
  },
  {
    name: "deletion records are kept for a century at most",
    environment: { PLANTSTORE_DELETIONS_KEPT_HOURS: "876000" },
    want: { deletionsKeptHours: 876_000 },
  },
  {
    name: "one call a second",
    environment: { PLANTSTORE_RATE_PER_PRINCIPAL: "1", PLANTSTORE_RATE_PER_ADDRESS: "1" },
    want: { ratePerPrincipal: 1, ratePerAddress: 1 },
  },
])("$name", ({ environment, flags, want }) => {
  expect(configurationOf({ ...minimal, ...environment }, flags)).toMatchObject(want);
});

test("tokens in clear are kept as hashes only", () => {
  const configuration = configurationOf({ ...minimal, PLANTSTORE_TOKENS: "first-first-first, second-second-second" });
  expect(configuration.tokens?.map(({ name }) => name)).toEqual(["token-1", "token-2"]);
  expect(JSON.stringify(configuration)).not.toContain("first-first");
});

test.each([
  ["PORT", "http", "must be a whole number from 0 to 65535"],
  ["PORT", "65536", "must be a whole number from 0 to 65535"],
  ["PORT", "0x50", "must be a whole number from 0 to 65535"],
  ["HOST", "http://x", "must be an IP address, a host name, or unix: and a path of 107 bytes at most"],
  ["PLANTSTORE_SOCKET_MODE", "rw", "must be a mode of three digits, such as 660"],
  ["PLANTSTORE_WORKERS", "257", "must be a whole number from 1 to 256"],
  ["PLANTSTORE_MAX_CONNECTION_AGE_MS", "31536000001", "must be a whole number of milliseconds from 1 to 31536000000"],
  ["PLANTSTORE_RATE_PER_PRINCIPAL", "1000001", "must be a whole number of calls a second from 1 to 1000000"],
  ["PLANTSTORE_RATE_PER_ADDRESS", "1000001", "must be a whole number of calls a second from 1 to 1000000"],
  ["PLANTSTORE_DRAIN_DELAY_MS", "-1", "must be a whole number of milliseconds from 0 to 3600000"],
  ["PLANTSTORE_DRAIN_TIMEOUT_MS", "3600001", "must be a whole number of milliseconds from 0 to 3600000"],
  ["LOG_LEVEL", "loud", "must be one of silent, fatal, error, warn, info, debug, trace"],
  [
    "PLANTSTORE_TOKEN_HASHES_FILE",
    "/no/such",
    "must name a file that can be read: there is no /no/such, or a folder above it is missing",
  ],
  ["PLANTSTORE_PUBLIC_URL", "ftp://x", "must be an http or https URL"],
  ["PLANTSTORE_PUBLIC_URL", "https://x/?a", "must be a URL without query, fragment and credentials"],
  ["PLANTSTORE_PUBLIC_URL", "https://x/#a", "must be a URL without query, fragment and credentials"],
  ["PLANTSTORE_DELETIONS_KEPT_HOURS", "876001", "must be a whole number of hours from 1 to 876000"],
  [
    "PLANTSTORE_TRUSTED_PROXIES",
    "10.0.0.0/8, proxy.example",
    "must be IP addresses or networks such as 10.0.0.0/8, or unix:, separated by commas",
  ],
])("%s=%s is one problem: it %s", (name, value, says) => {
  expect(problemsOf({ ...minimal, [name]: value })).toEqual([`${name} ${says}, not "${value}"`]);
});

test.each<{ name: string; environment: Texts; flags?: Texts; want: string }>([
  {
    name: "a bad flag, by the name of the flag",
    environment: {},
    flags: { port: "" },
    want: '--port must be a whole number from 0 to 65535, not ""',
  },
  {
    name: "a path that is too long for a socket",
    environment: { HOST: `unix:/${"x".repeat(107)}` },
    want: `HOST must be an IP address, a host name, or unix: and a path of 107 bytes at most, not "unix:/${"x".repeat(107)}"`,
  },
  {
    name: "PROXY headers in front of TLS on a Unix socket",
    environment: {
      HOST: "unix:s",
      PLANTSTORE_PROXY_PROTOCOL: "on",
      PLANTSTORE_TRUSTED_PROXIES: "unix:",
      TLS_CERT_FILE: someFile,
      TLS_KEY_FILE: someFile,
    },
    want: "PLANTSTORE_PROXY_PROTOCOL and TLS_CERT_FILE together need a TCP port",
  },
  {
    name: "an admin address that is that of the service",
    environment: { PORT: "9464", PLANTSTORE_ADMIN_ADDRESS: "9464" },
    want: "PLANTSTORE_ADMIN_ADDRESS must have another port than PORT",
  },
  {
    name: "a public URL with a user's name",
    environment: { PLANTSTORE_PUBLIC_URL: "https://u@x/" },
    want: 'PLANTSTORE_PUBLIC_URL must be a URL without query, fragment and credentials, not "https://…@x/"',
  },
  {
    name: "a public URL with a password, which is not repeated",
    environment: { PLANTSTORE_PUBLIC_URL: "https://:pw@x/" },
    want: 'PLANTSTORE_PUBLIC_URL must be a URL without query, fragment and credentials, not "https://…@x/"',
  },
  {
    name: "a provider's URL with a password, which is not repeated",
    environment: {
      PLANTSTORE_JWT_ISSUER: "a",
      PLANTSTORE_JWT_AUDIENCE: "b",
      PLANTSTORE_JWKS_URL: "https://u:pw@x/keys",
    },
    want: 'PLANTSTORE_JWKS_URL must be an https URL, or http to the loopback address; several are separated by commas, not "https://…@x/keys"',
  },
  {
    name: "an unknown database, whose URL may hold a password",
    environment: { DATABASE_URL: "mysql://u:pw@h/d" },
    want: "DATABASE_URL must be sqlite:<file>, postgres://user:password@host:port/database or memory:",
  },
  {
    name: "a port of PostgreSQL that is no number",
    environment: { DATABASE_URL: "postgres://ann:secret@h/d?port=abc" },
    want: "DATABASE_URL must be a URL of PostgreSQL: in the database URL, a port must be a number from 1 to 65535",
  },
  {
    name: "two places of one database",
    environment: { DATABASE_URL: "memory:", DATABASE_URL_FILE: databaseUrlFile },
    want: "DATABASE_URL and DATABASE_URL_FILE must not be given together",
  },
  {
    name: "a file with no URL of PostgreSQL",
    environment: { DATABASE_URL: "", DATABASE_URL_FILE: otherUrlFile },
    want: expect.stringMatching(
      /^DATABASE_URL_FILE must name a file with a URL of PostgreSQL: the database URL must be postgres:/,
    ),
  },
  {
    name: "a file for the URL that is not there",
    environment: { DATABASE_URL: "", DATABASE_URL_FILE: "/nowhere" },
    want: expect.stringMatching(
      /^DATABASE_URL_FILE must name a file with a URL of PostgreSQL: cannot read \/nowhere: /,
    ),
  },
  {
    name: "an SQLite database that would be gone with the process",
    environment: { DATABASE_URL: "sqlite::memory:" },
    want: "DATABASE_URL must be sqlite:<file>, postgres://user:password@host:port/database or memory:",
  },
  {
    name: "a certificate without its key",
    environment: { TLS_CERT_FILE: someFile },
    want: "TLS_CERT_FILE and TLS_KEY_FILE must be given together",
  },
  {
    name: "a key without its certificate",
    environment: { TLS_KEY_FILE: someFile },
    want: "TLS_CERT_FILE and TLS_KEY_FILE must be given together",
  },
  {
    name: "the PROXY protocol without proxies",
    environment: { PLANTSTORE_PROXY_PROTOCOL: "on" },
    want: "PLANTSTORE_PROXY_PROTOCOL needs PLANTSTORE_TRUSTED_PROXIES: nobody else's header is read",
  },
  {
    name: "a setting that is misspelt",
    environment: { PLANTSTORE_TOKEN: "sixteen-characters" },
    want: "PLANTSTORE_TOKEN is no setting; did you mean PLANTSTORE_TOKENS?",
  },
  {
    name: "a setting with a prefix that it does not have",
    environment: { PLANTSTORE_PORT: "8080" },
    want: "PLANTSTORE_PORT is no setting; did you mean PORT?",
  },
  {
    name: "a setting that is like no other",
    environment: { PLANTSTORE_WATERING_CAN: "1" },
    want: "PLANTSTORE_WATERING_CAN is no setting",
  },
  {
    name: "a name that nobody would type",
    environment: { [`PLANTSTORE_${"X".repeat(100_000)}`]: "1" },
    want: `PLANTSTORE_${"X".repeat(100_000)} is no setting`,
  },
])("$name is one problem", ({ environment, flags, want }) => {
  expect(problemsOf({ ...minimal, ...environment }, flags)).toEqual([want]);
});

test.each([
  ["PLANTSTORE_SERVICE_HOST", "10.0.0.1"],
  ["PLANTSTORE_SERVICE_PORT_HTTP", "80"],
  ["PLANTSTORE_PORT", "tcp://10.0.0.1:80"],
  ["PLANTSTORE_PORT_80_TCP_ADDR", "10.0.0.1"],
  ["PLANTSTORE_CANARY_SERVICE_PORT", "80"],
  ["PLANTSTORE_TOKEN", ""],
])("%s, which Kubernetes sets or nobody, is no problem as %j", (name, value) => {
  expect(problemsOf({ ...minimal, [name]: value })).toEqual([]);
});

test("a bad token is a problem that does not repeat the token", () => {
  const problems = problemsOf({ ...minimal, PLANTSTORE_TOKENS: "short" });
  expect(problems).toEqual([expect.stringContaining("PLANTSTORE_TOKENS must hold bearer tokens: token 1 ")]);
  expect(problems[0]).not.toContain('"short"');
});

test("a file stands for the URL of a database", () => {
  const { database } = configurationOf({ DATABASE_URL_FILE: databaseUrlFile, PLANTSTORE_WORKERS: "2" });
  expect(database).toEqual({ kind: "postgres", url: databaseUrl, urlFile: databaseUrlFile });
});

test("a missing database is a problem", () => {
  expect(problemsOf({})).toEqual([expect.stringContaining("DATABASE_URL is missing")]);
});

test("all problems are told at once", () => {
  expect(problemsOf({ PORT: "x", LOG_LEVEL: "y", HOST: " ", TLS_CERT_FILE: someFile })).toHaveLength(5);
});

test.each(["0.0.0.0", "::", "192.0.2.1", "plants.example"])("%s needs a store that keeps and a verifier", (host) => {
  expect(problemsOf({ ...minimal, HOST: host })).toEqual([
    "DATABASE_URL must not be memory: when HOST is not a loopback address, since nothing is kept",
    "HOST must be a loopback address unless credentials can be verified: set one of PLANTSTORE_TOKEN_HASHES_FILE, " +
      "PLANTSTORE_TOKENS, PLANTSTORE_JWT_ISSUER, PLANTSTORE_INTROSPECTION_URL",
  ]);
});

test.each(["sqlite:plants.db", "memory:"])(
  "several workers on %s are refused, since they would get in each other's way",
  (url) => {
    expect(problemsOf({ DATABASE_URL: url, PLANTSTORE_WORKERS: "2" })).toEqual([
      expect.stringContaining("PLANTSTORE_WORKERS must be 1"),
    ]);
  },
);

test("several workers on PostgreSQL are taken, on a Unix socket too", () => {
  const several = { DATABASE_URL: "postgres://h/d", PLANTSTORE_WORKERS: "2" };
  expect(configurationOf(several).workers).toBe(2);
  expect(configurationOf({ ...several, HOST: "unix:s" }).workers).toBe(2);
});

test("an exposed address is taken with a store that keeps and a verifier", () => {
  const environment = { HOST: "0.0.0.0", DATABASE_URL: "sqlite:plants.db", PLANTSTORE_TOKENS: "sixteen-characters" };
  expect(configurationOf(environment).host).toBe("0.0.0.0");
});
