import { fileURLToPath } from "node:url";
import { writeFileSync } from "node:fs";
import { afterAll, expect, test } from "vitest";
import { readConfiguration } from "../../src/server/configuration.ts";
import { plantLocationOf } from "../../src/server/database-url.ts";
import type { Configuration } from "../../src/server/settings.ts";
import { problemsOf } from "../support/server/start-configured.ts";
import { createTempFolder } from "@protoport/testing/process";

type Texts = Record<string, string>;
const minimal: Texts = { DATABASE_URL: "memory:" };
const publicUrlProblem =
  "must be an http or https URL without a query, fragment or credentials, such as https://api.example";
const socketModeProblem = "must be a file mode of three octal digits, such as 660";
const someFile = fileURLToPath(import.meta.url);
const folder = createTempFolder();
afterAll(() => folder[Symbol.dispose]());
const databaseUrl = "postgres://ann:secret@db/p";
const databaseUrlFile = folder.file("url");
writeFileSync(databaseUrlFile, `${databaseUrl}\n`);
const otherUrlFile = folder.file("other-url");
writeFileSync(otherUrlFile, "memory:");

const configurationOf = (environment: Texts, flags: Texts = {}) => readConfiguration({ environment, flags });

const wrapped = [
  { around: "a space before it", wrap: (text: string): string => ` ${text}` },
  { around: "a space after it", wrap: (text: string): string => `${text} ` },
  { around: "two line breaks after it", wrap: (text: string): string => `${text}\n\n` },
  { around: "CR after it", wrap: (text: string): string => `${text}\r` },
  { around: "a byte order mark before it", wrap: (text: string): string => `\uFEFF${text}` },
  { around: "quotes around it", wrap: (text: string): string => `"${text}"` },
];
// oxfmt-ignore
const oneOfEach: readonly (readonly [variable: string, text: string])[] = [
  ["DATABASE_URL", "sqlite:plants.db"], ["DATABASE_URL", "postgres://ann@db/p"], ["DATABASE_URL_FILE", databaseUrlFile],
  ["HOST", "127.0.0.1"], ["HOST", "unix:/run/plants.sock"], ["PORT", "9000"], ["LOG_LEVEL", "warn"],
  ["PLANTSTORE_PUBLIC_URL", "https://plants.example"], ["PLANTSTORE_TRUSTED_PROXIES", "10.0.0.1"],
  ["PLANTSTORE_ADMIN_ADDRESS", "9464"], ["PLANTSTORE_TOKENS", "a-token-that-is-long-enough"],
];

test.each(oneOfEach.flatMap(([variable, text]) => wrapped.map((each) => ({ variable, text, ...each }))))(
  "$variable=$text with $around is refused by readConfiguration",
  ({ variable, text, wrap }) => {
    const base = variable.startsWith("DATABASE_URL") ? {} : minimal;
    expect(problemsOf({ ...base, [variable]: wrap(text) })[0]).toContain(`${variable} must `);
  },
);

test.each(["\n", "\r\n"])("readConfiguration removes the line break %j", (end) => {
  const environment = { DATABASE_URL: `sqlite:plants.db${end}`, PORT: `9000${end}`, HOST: "127.0.0.1" };
  expect(configurationOf(environment)).toMatchObject({ database: { kind: "sqlite", path: "plants.db" }, port: 9000 });
  expect(configurationOf({ ...minimal, PORT: end })).toMatchObject({ port: 8080 });
});

test.each(["\n", "\r\n"])("plantLocationOf removes the line break %j after DATABASE_URL", (end) => {
  expect(plantLocationOf(`sqlite:plants.db${end}`, "/nowhere")).toEqual({ kind: "sqlite", path: "plants.db" });
  expect(() => plantLocationOf("sqlite:plants.db ")).toThrow("DATABASE_URL must not begin or end with white space");
  expect(() => plantLocationOf("", "/url ")).toThrow("DATABASE_URL_FILE must not begin or end with white space");
});

test("readConfiguration returns the defaults", () => {
  // oxfmt-ignore
  expect(configurationOf(minimal)).toEqual({
    host: "127.0.0.1", port: 8080, socketMode: "660", workers: 1, database: { kind: "memory" },
    deletionsKeptHours: 2160, tokens: undefined, tokenHashesFile: undefined, jwtIssuers: undefined,
    jwtAudiences: undefined, jwtAudienceClaim: undefined, jwtKeysUrls: undefined, jwtKeysFile: undefined,
    jwtAlgorithms: ["RS256", "PS256", "ES256", "EdDSA"], jwtType: "any", providerScopes: "ignored",
    jwtScopeClaims: ["scope", "scp"], introspectionUrl: undefined, introspectionClientId: undefined,
    introspectionClientSecretFile: undefined, introspectionAudiences: undefined, introspectionSubjectClaim: undefined,
    publicUrl: undefined, docs: "closed", mcp: "off", trustedProxies: undefined, proxyFields: undefined,
    proxyProtocol: "off", ratePerPrincipal: undefined, ratePerAddress: undefined, tlsCertFile: undefined,
    tlsKeyFile: undefined, requestIdResponses: "requested", logLevel: "info", audit: "always", logProbes: "on",
    drainDelayMs: 5000, drainTimeoutMs: 20_000 });
});

test.each<[name: string, environment: Texts, want: Partial<Configuration>, flags?: Texts]>(
  // oxfmt-ignore
  [
    ["an environment variable is read", { PORT: "9000" }, { port: 9000 }],
    ["a flag overrides the variable", { PORT: "9000" }, { port: 9001 }, { port: "9001" }],
    ["a flag overrides an invalid variable", { PORT: "x" }, { port: 9001 }, { port: "9001" }],
    ["an empty variable counts as not set", { PORT: "" }, { port: 8080 }],
    ["port 0 is accepted", { PORT: "0" }, { port: 0 }],
    ["an SQLite path is not changed", { DATABASE_URL: "sqlite:/var/lib/p l.db" },
      { database: { kind: "sqlite", path: "/var/lib/p l.db" } }],
    ["an SQLite path may look like a URL", { DATABASE_URL: "sqlite:postgres://plants.db" },
      { database: { kind: "sqlite", path: "postgres://plants.db" } }],
    ["a readable token file is accepted", { PLANTSTORE_TOKEN_HASHES_FILE: someFile }, { tokenHashesFile: someFile }],
    ["HOST may be an IPv6 address", { HOST: "::1" }, { host: "::1" }],
    ["HOST may be the path of a Unix socket", { HOST: "unix:/run/p l/http.sock", PLANTSTORE_SOCKET_MODE: "600" },
      { host: "unix:/run/p l/http.sock", socketMode: "600" }],
    ["a Unix socket has mode 660 by default, and does not require credentials",
      { HOST: "unix:s", DATABASE_URL: "memory:" }, { host: "unix:s", socketMode: "660", database: { kind: "memory" } }],
    ["pages of any origin may be allowed", { PLANTSTORE_CORS_ORIGINS: "*" }, { corsOrigins: "*" }],
    ["pages of several origins may be allowed", { PLANTSTORE_CORS_ORIGINS: "https://shop.example, http://localhost:3000" },
      { corsOrigins: ["https://shop.example", "http://localhost:3000"] }],
    ["the public URL may have a path", { PLANTSTORE_PUBLIC_URL: "https://x.example/api" },
      { publicUrl: new URL("https://x.example/api") }],
    ["deletion records can be kept for a century", { PLANTSTORE_DELETIONS_KEPT_HOURS: "876000" },
      { deletionsKeptHours: 876_000 }],
    ["a rate may be one call per second", { PLANTSTORE_RATE_PER_PRINCIPAL: "1", PLANTSTORE_RATE_PER_ADDRESS: "1" },
      { ratePerPrincipal: 1, ratePerAddress: 1 }],
  ],
)("%s", (_, environment, want, flags) => {
  expect(configurationOf({ ...minimal, ...environment }, flags)).toMatchObject(want);
});

test("readConfiguration keeps hashes instead of plain tokens", () => {
  const configuration = configurationOf({ ...minimal, PLANTSTORE_TOKENS: "first-first-first, second-second-second" });
  expect(configuration.tokens?.map(({ name }) => name)).toEqual(["token-1", "token-2"]);
  expect(JSON.stringify(configuration)).not.toContain("first-first");
});

test.each(
  // oxfmt-ignore
  [
    ["PORT", "http", "must be between 0 and 65535"],
    ["PORT", "65536", "must be between 0 and 65535"],
    ["PORT", "0x50", "must be between 0 and 65535"],
    ["HOST", "http://x", "must be an IP address, a host name, or unix: followed by a path of at most 107 bytes"],
    ["HOST", "999.1.1.1", "must be an IP address, a host name, or unix: followed by a path of at most 107 bytes"],
    ["HOST", "1:2", "must be an IP address, a host name, or unix: followed by a path of at most 107 bytes"],
    ["PLANTSTORE_SOCKET_MODE", "rw", socketModeProblem],
    ["PLANTSTORE_SOCKET_MODE", "6", socketModeProblem],
    ["PLANTSTORE_SOCKET_MODE", "888", socketModeProblem],
    ["PLANTSTORE_SOCKET_MODE", "0o660", socketModeProblem],
    ["PLANTSTORE_WORKERS", "257", "must be between 1 and 256"],
    ["PLANTSTORE_MAX_CONNECTION_AGE_MS", "31536000001", "must be between 1 and 31536000000"],
    ["PLANTSTORE_RATE_PER_PRINCIPAL", "1000001", "must be between 1 and 1000000"],
    ["PLANTSTORE_RATE_PER_ADDRESS", "1000001", "must be between 1 and 1000000"],
    ["PLANTSTORE_DRAIN_DELAY_MS", "-1", "must be between 0 and 3600000"],
    ["PLANTSTORE_DRAIN_TIMEOUT_MS", "3600001", "must be between 0 and 3600000"],
    ["LOG_LEVEL", "loud", "must be one of silent, fatal, error, warn, info, debug, trace"],
    ["PLANTSTORE_TOKEN_HASHES_FILE", "/no/such",
      "must be a readable file (/no/such or its parent directory does not exist)"],
    ["PLANTSTORE_PUBLIC_URL", "ftp://x", publicUrlProblem],
    ["PLANTSTORE_PUBLIC_URL", "https://x/?a", publicUrlProblem],
    ["PLANTSTORE_PUBLIC_URL", "https://x/#a", publicUrlProblem],
    ["PLANTSTORE_DELETIONS_KEPT_HOURS", "876001", "must be between 1 and 876000"],
    ["PLANTSTORE_TRUSTED_PROXIES", "10.0.0.0/8, proxy.example",
      "must be a comma-separated list of IP addresses, networks such as 10.0.0.0/8, or unix:"],
    ["PLANTSTORE_DOCS", "yes", "must be open or closed"],
    ["PLANTSTORE_MCP", "yes", "must be on or off"],
  ],
)('readConfiguration refuses %s=%s with the reason "%s"', (name, value, rule) => {
  expect(problemsOf({ ...minimal, [name]: value })).toEqual([`${name} ${rule}, got "${value}"`]);
});

// oxfmt-ignore
test.each([
  "shop.example", "https://shop.example/", "https://shop.example/cart", "https://Shop.example", "null",
  "https://shop.example:443", "https://shop.example,,http://localhost", "https://shop.example,*",
])("readConfiguration refuses PLANTSTORE_CORS_ORIGINS=%s", (text) => {
  const rule = "must be * or a comma-separated list of origins such as https://shop.example";
  const want = [`PLANTSTORE_CORS_ORIGINS ${rule}, got "${text}"`];
  expect(problemsOf({ ...minimal, PLANTSTORE_CORS_ORIGINS: text })).toEqual(want);
});

test.each<[name: string, environment: Texts, want: string, flags?: Texts]>(
  // oxfmt-ignore
  [
    ["an invalid flag", {}, '--port must be between 0 and 65535, got ""', { port: "" }],
    ["a port with a space", { PORT: " 80" }, 'PORT must not begin or end with white space, got " 80"'],
    ["a database URL in quotes", { DATABASE_URL: '"memory:"' }, "DATABASE_URL must not be enclosed in quotes"],
    [
      "a path that is too long for a socket",
      { HOST: `unix:/${"é".repeat(54)}` },
      `HOST must be an IP address, a host name, or unix: followed by a path of at most 107 bytes, got "unix:/${"é".repeat(54)}"`,
    ],
    ["the PROXY protocol and TLS on a Unix socket", {
        HOST: "unix:s", PLANTSTORE_PROXY_PROTOCOL: "on", PLANTSTORE_TRUSTED_PROXIES: "unix:", TLS_CERT_FILE: someFile,
        TLS_KEY_FILE: someFile,
      }, "HOST must not be a Unix socket when PLANTSTORE_PROXY_PROTOCOL and TLS_CERT_FILE are both set"],
    ["an admin address with the service's port", { PORT: "9464", PLANTSTORE_ADMIN_ADDRESS: "9464" },
      "PLANTSTORE_ADMIN_ADDRESS must use another port than PORT"],
    ["an admin address with the service's port on localhost",
      { HOST: "localhost", PORT: "9464", PLANTSTORE_ADMIN_ADDRESS: "9464" },
      "PLANTSTORE_ADMIN_ADDRESS must use another port than PORT"],
    ["an admin address with the service's port on all addresses", {
        HOST: "::", PORT: "9464", DATABASE_URL: "sqlite:plants.db", PLANTSTORE_TOKENS: "sixteen-characters",
        PLANTSTORE_ADMIN_ADDRESS: "9464" }, "PLANTSTORE_ADMIN_ADDRESS must use another port than PORT"],
    ["a public URL with a user name", { PLANTSTORE_PUBLIC_URL: "https://u@x/" },
      `PLANTSTORE_PUBLIC_URL ${publicUrlProblem}, got "https://…@x/"`],
    ["a public URL with a password", { PLANTSTORE_PUBLIC_URL: "https://:pw@x/" },
      `PLANTSTORE_PUBLIC_URL ${publicUrlProblem}, got "https://…@x/"`],
    ["a JWKS URL with a password",
      { PLANTSTORE_JWT_ISSUERS: "a", PLANTSTORE_JWT_AUDIENCES: "b", PLANTSTORE_JWT_KEYS_URLS: "https://u:pw@x/keys" },
      'PLANTSTORE_JWT_KEYS_URLS must be a comma-separated list of https URLs, or http URLs of a loopback address, got "https://…@x/keys"'],
    ["an unknown kind of database", { DATABASE_URL: "mysql://u:pw@h/d" },
      "DATABASE_URL must be sqlite:<file>, postgres://user:password@host:port/database or memory:"],
    ["a PostgreSQL port that is not a number", { DATABASE_URL: "postgres://ann:secret@h/d?port=abc" },
      "DATABASE_URL must be a PostgreSQL URL (port in the database URL must be an integer between 1 and 65535)"],
    ["two database URLs", { DATABASE_URL: "memory:", DATABASE_URL_FILE: databaseUrlFile },
      "DATABASE_URL and DATABASE_URL_FILE must not both be set"],
    ["a URL file without a PostgreSQL URL", { DATABASE_URL: "", DATABASE_URL_FILE: otherUrlFile },
      expect.stringMatching(
        /^DATABASE_URL_FILE must be a file with a PostgreSQL URL \(the database URL must be postgres:/,
      )],
    ["a missing URL file", { DATABASE_URL: "", DATABASE_URL_FILE: "/nowhere" },
      expect.stringMatching(/^DATABASE_URL_FILE must be a file with a PostgreSQL URL \(cannot read \/nowhere: /)],
    ["an SQLite database in memory", { DATABASE_URL: "sqlite::memory:" },
      "DATABASE_URL must be sqlite:<file>, postgres://user:password@host:port/database or memory:"],
    ["a certificate without its key", { TLS_CERT_FILE: someFile },
      "TLS_CERT_FILE and TLS_KEY_FILE must be set together"],
    ["a key without its certificate", { TLS_KEY_FILE: someFile },
      "TLS_CERT_FILE and TLS_KEY_FILE must be set together"],
    ["a grace period without a connection age", { PLANTSTORE_MAX_CONNECTION_AGE_GRACE_MS: "1000" },
      "PLANTSTORE_MAX_CONNECTION_AGE_GRACE_MS requires PLANTSTORE_MAX_CONNECTION_AGE_MS"],
    ["header fields of proxies without trusted proxies", { PLANTSTORE_PROXY_FIELDS: "forwarded" },
      "PLANTSTORE_PROXY_FIELDS requires PLANTSTORE_TRUSTED_PROXIES"],
    ["the PROXY protocol without trusted proxies", { PLANTSTORE_PROXY_PROTOCOL: "on" },
      "PLANTSTORE_PROXY_PROTOCOL requires PLANTSTORE_TRUSTED_PROXIES: only trusted proxies may send a PROXY header"],
    ["a misspelt setting", { PLANTSTORE_TOKEN: "sixteen-characters" },
      'unknown setting "PLANTSTORE_TOKEN", did you mean "PLANTSTORE_TOKENS"?'],
    ["a setting with an extra prefix", { PLANTSTORE_PORT: "8080" },
      'unknown setting "PLANTSTORE_PORT", did you mean "PORT"?'],
    ["TLS_CERT instead of TLS_CERT_FILE", { TLS_CERT: someFile },
      'unknown setting "TLS_CERT", did you mean "TLS_CERT_FILE"?'],
    ["TLS_KEY instead of TLS_KEY_FILE", { TLS_KEY: someFile }, 'unknown setting "TLS_KEY", did you mean "TLS_KEY_FILE"?'],
    ["JWT keys without the suffix _FILE", { PLANTSTORE_JWT_KEYS: someFile },
      'unknown setting "PLANTSTORE_JWT_KEYS", did you mean "PLANTSTORE_JWT_KEYS_FILE"?'],
    ["an unknown setting that is similar to no other", { PLANTSTORE_WATERING_CAN: "1" },
      'unknown setting "PLANTSTORE_WATERING_CAN"'],
    ["an unknown setting with a very long name", { [`PLANTSTORE_${"X".repeat(100_000)}`]: "1" },
      `unknown setting "PLANTSTORE_${"X".repeat(100_000)}"`],
  ],
)("readConfiguration reports %s as an error", (_, environment, want, flags) => {
  expect(problemsOf({ ...minimal, ...environment }, flags)).toEqual([want]);
});

// oxfmt-ignore
test.each([
  ["PLANTSTORE_SERVICE_HOST", "10.0.0.1"], ["PLANTSTORE_SERVICE_PORT_HTTP", "80"],
  ["PLANTSTORE_PORT", "tcp://10.0.0.1:80"], ["PLANTSTORE_PORT_80_TCP_ADDR", "10.0.0.1"],
  ["PLANTSTORE_CANARY_SERVICE_PORT", "80"], ["PLANTSTORE_PORT_80_SCTP_ADDR", "10.0.0.1"], ["PLANTSTORE_TOKEN", ""],
])("the unknown setting %s=%j is ignored by readConfiguration", (name, value) => {
  expect(problemsOf({ ...minimal, [name]: value })).toEqual([]);
});

test("the message about an invalid token does not contain the token", () => {
  const problems = problemsOf({ ...minimal, PLANTSTORE_TOKENS: "short" });
  const want = [expect.stringContaining("PLANTSTORE_TOKENS must be a comma-separated list of bearer tokens: token 1 ")];
  expect(problems).toEqual(want);
  expect(problems[0]).not.toContain('"short"');
});

test("readConfiguration reads the database URL from a file", () => {
  const { database } = configurationOf({ DATABASE_URL_FILE: databaseUrlFile, PLANTSTORE_WORKERS: "2" });
  expect(database).toEqual({ kind: "postgres", url: databaseUrl, urlFile: databaseUrlFile });
});

test("readConfiguration refuses a missing database", () =>
  expect(problemsOf({})).toEqual(["DATABASE_URL is missing; set it to sqlite:<file>, postgres://… or memory:"]));

test("readConfiguration reports all problems together", () =>
  expect(problemsOf({ PORT: "x", LOG_LEVEL: "y", HOST: " ", TLS_CERT_FILE: someFile })).toHaveLength(5));

test.each(["0.0.0.0", "::", "192.0.2.1", "plants.example"])(
  "HOST=%s requires a persistent store and credentials",
  (host) =>
    expect(problemsOf({ ...minimal, HOST: host })).toEqual([
      "DATABASE_URL must not be memory: when HOST is not a loopback address, because a restart loses all plants",
      "HOST must be a loopback address unless one of PLANTSTORE_TOKEN_HASHES_FILE, PLANTSTORE_TOKENS, " +
        "PLANTSTORE_JWT_ISSUERS or PLANTSTORE_INTROSPECTION_URL is set",
    ]),
);

test.each(["sqlite:plants.db", "memory:"])("with %s, readConfiguration refuses several workers", (url) => {
  expect(String(problemsOf({ DATABASE_URL: url, PLANTSTORE_WORKERS: "2" }))).toMatch(/^PLANTSTORE_WORKERS must be 1/);
});

test("readConfiguration accepts several workers with PostgreSQL, even on a socket", () => {
  const several = { DATABASE_URL: "postgres://h/d", PLANTSTORE_WORKERS: "2" };
  expect(configurationOf(several).workers).toBe(2);
  expect(configurationOf({ ...several, HOST: "unix:s" }).workers).toBe(2);
});

test.each<Texts>([
  { PORT: "0", PLANTSTORE_ADMIN_ADDRESS: "0" },
  { PLANTSTORE_ADMIN_ADDRESS: "65535" },
  { HOST: "127.0.0.2", PORT: "9464", PLANTSTORE_ADMIN_ADDRESS: "9464" },
  { HOST: "unix:s", PORT: "9464", PLANTSTORE_ADMIN_ADDRESS: "0.0.0.0:9464" },
  { HOST: "unix:s", PLANTSTORE_ADMIN_ADDRESS: "unix:admin" },
])("with %o, readConfiguration accepts the admin address", (environment) => {
  expect(configurationOf({ ...minimal, ...environment }).adminAddress).toBeDefined();
});
