import { fileURLToPath } from "node:url";
import { writeFileSync } from "node:fs";
import { afterAll, expect, test } from "vitest";
import { readConfiguration, trimmedSettings } from "../../src/server/configuration.ts";
import { plantLocationOf } from "../../src/server/database-url.ts";
import type { Configuration } from "../../src/server/settings.ts";
import { problemsOf } from "../support/server/problems-of.ts";
import { createTempFolder } from "../../packages/testing/src/process/temp-folder.ts";

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

const wrapped = [
  { around: "a space before it", wrap: (text: string): string => ` ${text}` },
  { around: "a space after it", wrap: (text: string): string => `${text} ` },
  { around: "two line ends after it", wrap: (text: string): string => `${text}\n\n` },
  { around: "CR after it", wrap: (text: string): string => `${text}\r` },
  { around: "a byte order mark before it", wrap: (text: string): string => `\uFEFF${text}` },
  { around: "quotes around it", wrap: (text: string): string => `"${text}"` },
];
const oneOfEach: readonly (readonly [variable: string, text: string])[] = [
  ["DATABASE_URL", "sqlite:plants.db"],
  ["DATABASE_URL", "postgres://ann@db/p"],
  ["DATABASE_URL_FILE", databaseUrlFile],
  ["HOST", "127.0.0.1"],
  ["HOST", "unix:/run/plants.sock"],
  ["PORT", "9000"],
  ["LOG_LEVEL", "warn"],
  ["PLANTSTORE_PUBLIC_URL", "https://plants.example"],
  ["PLANTSTORE_TRUSTED_PROXIES", "10.0.0.1"],
  ["PLANTSTORE_ADMIN_ADDRESS", "9464"],
  ["PLANTSTORE_TOKENS", "a-token-that-is-long-enough"],
];

test.each(oneOfEach.flatMap(([variable, text]) => wrapped.map((each) => ({ variable, text, ...each }))))(
  "$variable of $text is refused with $around",
  ({ variable, text, wrap }) => {
    const base = variable.startsWith("DATABASE_URL") ? {} : minimal;
    const problems = problemsOf({ ...base, [variable]: wrap(text) });
    expect(problems[0]).toContain(`${variable} must `);
  },
);

test.each(["\n", "\r\n"])("one line end %j after a setting is removed, and named", (end) => {
  const environment = { DATABASE_URL: `sqlite:plants.db${end}`, PORT: `9000${end}`, HOST: "127.0.0.1" };
  expect(configurationOf(environment)).toMatchObject({ database: { kind: "sqlite", path: "plants.db" }, port: 9000 });
  expect(trimmedSettings({ environment, flags: {} })).toEqual(["PORT", "DATABASE_URL"]);
  expect(configurationOf({ ...minimal, PORT: end })).toMatchObject({ port: 8080 });
});

test.each(["\n", "\r\n"])("one line end %j after DATABASE_URL of a command is removed", (end) => {
  expect(plantLocationOf(`sqlite:plants.db${end}`)).toEqual({ kind: "sqlite", path: "plants.db" });
  expect(() => plantLocationOf("sqlite:plants.db ")).toThrow("DATABASE_URL must have no white space around it");
});

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
    httpEngine: "own",
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

test.each<[name: string, environment: Texts, want: Partial<Configuration>, flags?: Texts]>([
  ["a variable is read", { PORT: "9000" }, { port: 9000 }],
  ["a flag beats the variable", { PORT: "9000" }, { port: 9001 }, { port: "9001" }],
  ["a flag beats even a bad variable", { PORT: "x" }, { port: 9001 }, { port: "9001" }],
  ["an empty variable is not set", { PORT: "" }, { port: 8080 }],
  ["port 0 takes a free port", { PORT: "0" }, { port: 0 }],
  [
    "an SQLite path is kept as it is",
    { DATABASE_URL: "sqlite:/var/lib/p l.db" },
    { database: { kind: "sqlite", path: "/var/lib/p l.db" } },
  ],
  [
    "an SQLite path may look like a URL",
    { DATABASE_URL: "sqlite:postgres://plants.db" },
    { database: { kind: "sqlite", path: "postgres://plants.db" } },
  ],
  ["a file that can be read is taken", { PLANTSTORE_TOKEN_HASHES_FILE: someFile }, { tokenHashesFile: someFile }],
  ["an IPv6 address is a host", { HOST: "::1" }, { host: "::1" }],
  [
    "a path of a Unix socket is a host",
    { HOST: "unix:/run/p l/http.sock", PLANTSTORE_SOCKET_MODE: "600" },
    { host: "unix:/run/p l/http.sock", socketMode: 0o600 },
  ],
  [
    "a Unix socket is for owner and group, and needs no credential to be sure of",
    { HOST: "unix:s", DATABASE_URL: "memory:" },
    { host: "unix:s", socketMode: 0o660, database: { kind: "memory" } },
  ],
  [
    "the public URL may have a path",
    { PLANTSTORE_PUBLIC_URL: "https://x.example/api" },
    { publicUrl: new URL("https://x.example/api") },
  ],
  [
    "deletion records are kept for a century at most",
    { PLANTSTORE_DELETIONS_KEPT_HOURS: "876000" },
    { deletionsKeptHours: 876_000 },
  ],
  [
    "one call a second",
    { PLANTSTORE_RATE_PER_PRINCIPAL: "1", PLANTSTORE_RATE_PER_ADDRESS: "1" },
    { ratePerPrincipal: 1, ratePerAddress: 1 },
  ],
])("%s", (_, environment, want, flags) => {
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
  ["HOST", "999.1.1.1", "must be an IP address, a host name, or unix: and a path of 107 bytes at most"],
  ["HOST", "1:2", "must be an IP address, a host name, or unix: and a path of 107 bytes at most"],
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
    "must name a file that can be read: /no/such or its parent directory does not exist",
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

test.each<[name: string, environment: Texts, want: string, flags?: Texts]>([
  ["a bad flag, by the name of the flag", {}, '--port must be a whole number from 0 to 65535, not ""', { port: "" }],
  [
    "a path that is too long for a socket",
    { HOST: `unix:/${"x".repeat(107)}` },
    `HOST must be an IP address, a host name, or unix: and a path of 107 bytes at most, not "unix:/${"x".repeat(107)}"`,
  ],
  [
    "PROXY headers in front of TLS on a Unix socket",
    {
      HOST: "unix:s",
      PLANTSTORE_PROXY_PROTOCOL: "on",
      PLANTSTORE_TRUSTED_PROXIES: "unix:",
      TLS_CERT_FILE: someFile,
      TLS_KEY_FILE: someFile,
    },
    "PLANTSTORE_PROXY_PROTOCOL and TLS_CERT_FILE together need a TCP port",
  ],
  [
    "an admin address that is that of the service",
    { PORT: "9464", PLANTSTORE_ADMIN_ADDRESS: "9464" },
    "PLANTSTORE_ADMIN_ADDRESS must have another port than PORT",
  ],
  [
    "an admin address that is that of the service by another name",
    { HOST: "localhost", PORT: "9464", PLANTSTORE_ADMIN_ADDRESS: "9464" },
    "PLANTSTORE_ADMIN_ADDRESS must have another port than PORT",
  ],
  [
    "an admin address among all those of the service",
    {
      HOST: "::",
      PORT: "9464",
      DATABASE_URL: "sqlite:plants.db",
      PLANTSTORE_TOKENS: "sixteen-characters",
      PLANTSTORE_ADMIN_ADDRESS: "9464",
    },
    "PLANTSTORE_ADMIN_ADDRESS must have another port than PORT",
  ],
  [
    "a public URL with a user's name",
    { PLANTSTORE_PUBLIC_URL: "https://u@x/" },
    'PLANTSTORE_PUBLIC_URL must be a URL without query, fragment and credentials, not "https://…@x/"',
  ],
  [
    "a public URL with a password, which is not repeated",
    { PLANTSTORE_PUBLIC_URL: "https://:pw@x/" },
    'PLANTSTORE_PUBLIC_URL must be a URL without query, fragment and credentials, not "https://…@x/"',
  ],
  [
    "a provider's URL with a password, which is not repeated",
    {
      PLANTSTORE_JWT_ISSUER: "a",
      PLANTSTORE_JWT_AUDIENCE: "b",
      PLANTSTORE_JWKS_URL: "https://u:pw@x/keys",
    },
    'PLANTSTORE_JWKS_URL must be an https URL, or http to the loopback address; several are separated by commas, not "https://…@x/keys"',
  ],
  [
    "an unknown database, whose URL may hold a password",
    { DATABASE_URL: "mysql://u:pw@h/d" },
    "DATABASE_URL must be sqlite:<file>, postgres://user:password@host:port/database or memory:",
  ],
  [
    "a port of PostgreSQL that is no number",
    { DATABASE_URL: "postgres://ann:secret@h/d?port=abc" },
    "DATABASE_URL must be a URL of PostgreSQL: in the database URL, a port must be a number from 1 to 65535",
  ],
  [
    "two places of one database",
    { DATABASE_URL: "memory:", DATABASE_URL_FILE: databaseUrlFile },
    "DATABASE_URL and DATABASE_URL_FILE must not be given together",
  ],
  [
    "a file with no URL of PostgreSQL",
    { DATABASE_URL: "", DATABASE_URL_FILE: otherUrlFile },
    expect.stringMatching(
      /^DATABASE_URL_FILE must name a file with a URL of PostgreSQL: the database URL must be postgres:/,
    ),
  ],
  [
    "a file for the URL that is not there",
    { DATABASE_URL: "", DATABASE_URL_FILE: "/nowhere" },
    expect.stringMatching(/^DATABASE_URL_FILE must name a file with a URL of PostgreSQL: cannot read \/nowhere: /),
  ],
  [
    "an SQLite database that would be gone with the process",
    { DATABASE_URL: "sqlite::memory:" },
    "DATABASE_URL must be sqlite:<file>, postgres://user:password@host:port/database or memory:",
  ],
  [
    "a certificate without its key",
    { TLS_CERT_FILE: someFile },
    "TLS_CERT_FILE and TLS_KEY_FILE must be given together",
  ],
  [
    "a key without its certificate",
    { TLS_KEY_FILE: someFile },
    "TLS_CERT_FILE and TLS_KEY_FILE must be given together",
  ],
  [
    "the PROXY protocol without proxies",
    { PLANTSTORE_PROXY_PROTOCOL: "on" },
    "PLANTSTORE_PROXY_PROTOCOL needs PLANTSTORE_TRUSTED_PROXIES: nobody else's header is read",
  ],
  [
    "a setting that is misspelt",
    { PLANTSTORE_TOKEN: "sixteen-characters" },
    "PLANTSTORE_TOKEN is no setting; did you mean PLANTSTORE_TOKENS?",
  ],
  [
    "a setting with a prefix that it does not have",
    { PLANTSTORE_PORT: "8080" },
    "PLANTSTORE_PORT is no setting; did you mean PORT?",
  ],
  ["a setting that is like no other", { PLANTSTORE_WATERING_CAN: "1" }, "PLANTSTORE_WATERING_CAN is no setting"],
  [
    "a name that nobody would type",
    { [`PLANTSTORE_${"X".repeat(100_000)}`]: "1" },
    `PLANTSTORE_${"X".repeat(100_000)} is no setting`,
  ],
])("%s is one problem", (_, environment, want, flags) => {
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

test.each<Texts>([
  { PORT: "0", PLANTSTORE_ADMIN_ADDRESS: "0" },
  { HOST: "127.0.0.2", PORT: "9464", PLANTSTORE_ADMIN_ADDRESS: "9464" },
  { HOST: "unix:s", PORT: "9464", PLANTSTORE_ADMIN_ADDRESS: "0.0.0.0:9464" },
])("an admin address of the same port is taken where it is another one: %o", (environment) => {
  expect(configurationOf({ ...minimal, ...environment }).adminAddress).toBeDefined();
});

test("an exposed address is taken with a store that keeps and a verifier", () => {
  const environment = { HOST: "0.0.0.0", DATABASE_URL: "sqlite:plants.db", PLANTSTORE_TOKENS: "sixteen-characters" };
  expect(configurationOf(environment).host).toBe("0.0.0.0");
});
