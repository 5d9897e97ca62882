import { mkdirSync, writeFileSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import * as fc from "fast-check";
import { afterAll, expect, test } from "vitest";
import { openDatabase } from "../../../../src/stores/sqlite/database.ts";
import { readConfiguration, startServer } from "../../../../src/server/index.ts";
import { createCertificate } from "@protoport/testing/http";
import { createSigningKey, createTempFolder, numRunsOf } from "@protoport/testing/process";
import { runCommand } from "../../../support/process/run-command.ts";

type Environment = Readonly<Record<string, string>>;

/** Related settings. A configuration contains one valid or invalid environment from each group. */
interface Group {
  readonly valid: readonly Environment[];
  /** Invalid environments. The error message for each names at least one of its variables. */
  readonly invalid: readonly Environment[];
}

const folder = createTempFolder();
afterAll(() => folder[Symbol.dispose]());

function fileWith(name: string, content: string | Uint8Array): string {
  writeFileSync(folder.file(name), content);
  return folder.file(name);
}

const missing = folder.file("missing");
const empty = fileWith("empty", "");
const other = fileWith("other", "dahlia ".repeat(200));
mkdirSync(folder.file("folder"));
const aFolder = folder.file("folder");

function store(): string {
  const file = folder.file("plants.db");
  openDatabase({ file, migrates: true }).close();
  return file;
}

function databaseOfAnotherProgram(): string {
  const path = folder.file("mail.db");
  using db = new DatabaseSync(path);
  db.exec("CREATE TABLE mail (id INTEGER)");
  return path;
}

function storeOfALaterRelease(): string {
  const file = folder.file("later.db");
  using db = openDatabase({ file, migrates: true });
  db.exec("PRAGMA user_version = 99");
  return file;
}

const [first, second] = [createCertificate("plants"), createCertificate("flowers")];
const cert = fileWith("cert.pem", first.cert);
const key = fileWith("key.pem", first.key);
const otherKey = fileWith("other-key.pem", second.key);
const tls = { TLS_CERT_FILE: cert, TLS_KEY_FILE: key };
const proxies = { PLANTSTORE_TRUSTED_PROXIES: "127.0.0.0/8, ::1, unix:" };
const { jwk } = await createSigningKey("ES256", "key");
const keySet = fileWith("jwks.json", JSON.stringify({ keys: [jwk] }));
const noKeys = fileWith("no-keys.json", '{"keys":[]}');
const jwt = { PLANTSTORE_JWT_ISSUERS: "https://issuer.example", PLANTSTORE_JWT_AUDIENCES: "plants" };
const hashes = fileWith("hashes", `sha256:${"a".repeat(64)} ci plants:delete -\n`);
const badHash = fileWith("bad-hash", "sha256:abc ci - -\n");
const badScope = fileWith("bad-scope", `sha256:${"a".repeat(64)} ci plants:delte -\n`);
const secret = fileWith("secret", "s3cret\n");
const introspection = {
  PLANTSTORE_INTROSPECTION_CLIENT_SECRET_FILE: secret,
  PLANTSTORE_INTROSPECTION_URL: "http://127.0.0.1:9/introspect",
  PLANTSTORE_INTROSPECTION_CLIENT_ID: "plants",
};

const each = (variable: string, ...values: readonly string[]) => values.map((value) => ({ [variable]: value }));

// oxfmt-ignore
const groups: readonly Group[] = [
  {
    valid: [{}, ...each("HOST", "localhost", "127.0.0.1", `unix:${folder.file("socket")}`)],
    invalid: [...each("HOST", "999.1.1.1", "127.0.0.1:80", "http://127.0.0.1", "[::1]", "::::", "192.0.2.1"),
      ...each("HOST", "127.0.0.1 ", "127.0.0.1,::1", "unix:", `unix:${"s".repeat(108)}`, `unix:${missing}/socket`),
      ...each("HOST", `unix:${other}`, `unix:${aFolder}`, `unix:${other}/socket`)],
  },
  { valid: [{}, { PORT: "0" }],
    invalid: each("PORT", "-1", "65536", "80a", "0x50", "1e3", " 80", "http", "8080,8081") },
  { valid: [{}, { PLANTSTORE_WORKERS: "1" }], invalid: each("PLANTSTORE_WORKERS", "0", "2", "257", "auto") },
  {
    // Most values have no file, because that is ten times faster.
    valid: [{}, {}, {}, {}, {}, {}, { DATABASE_URL: `sqlite:${store()}` }],
    invalid: [
      ...each("DATABASE_URL", "plants.db", "sqlite:", "sqlite::memory:", "memory", "mysql://127.0.0.1/plants", ""),
      ...each("DATABASE_URL", `sqlite:${missing}/plants.db`, `sqlite:${aFolder}`, `sqlite:${other}`),
      ...each("DATABASE_URL", `sqlite:${missing}`, `sqlite:${empty}`),
      ...each("DATABASE_URL", `sqlite:${other}/plants.db`, `"sqlite:${folder.file("quoted.db")}"`),
      ...each("DATABASE_URL", `sqlite:${databaseOfAnotherProgram()}`, `sqlite:${storeOfALaterRelease()}`),
      ...each("DATABASE_URL", "postgres://127.0.0.1:x/plants", "postgres://127.0.0.1/plants?sslmode=no"),
      ...each("DATABASE_URL", `postgres://127.0.0.1/plants?sslrootcert=${missing}&sslmode=verify-full`),
      { DATABASE_URL: "", DATABASE_URL_FILE: missing },
      { DATABASE_URL: "", DATABASE_URL_FILE: empty },
      { DATABASE_URL: "", DATABASE_URL_FILE: aFolder },
      { DATABASE_URL_FILE: other },
    ],
  },
  { valid: [{}, { PLANTSTORE_TOKENS: "a-token-of-this-test,another-token-of-it" }],
    invalid: each("PLANTSTORE_TOKENS", ",", "a-short-token", "a token of this test", "tokens-of-this-tést") },
  { valid: [{}, { PLANTSTORE_TOKEN_HASHES_FILE: hashes }, { PLANTSTORE_TOKEN_HASHES_FILE: empty }],
    invalid: each("PLANTSTORE_TOKEN_HASHES_FILE", missing, aFolder, badHash, badScope, other) },
  { valid: [{}, ...each("PLANTSTORE_PROVIDER_SCOPES", "ignored", "enforced").map((scopes) =>
      ({ ...jwt, PLANTSTORE_JWT_KEYS_FILE: keySet, ...scopes }))], invalid: [
      ...[missing, empty, aFolder, other, noKeys].map((file) => ({ ...jwt, PLANTSTORE_JWT_KEYS_FILE: file })),
      { ...jwt, PLANTSTORE_JWT_ISSUERS: "issuer.example" },
      { ...jwt, PLANTSTORE_JWT_ISSUERS: "http://issuer.example" },
      { ...jwt, PLANTSTORE_JWT_ISSUERS: "http://127.0.0.1:9,issuer.example" },
      { PLANTSTORE_JWT_ISSUERS: "https://issuer.example" },
      { PLANTSTORE_JWT_AUDIENCES: "plants" },
      { ...jwt, PLANTSTORE_JWT_AUDIENCES: "plants,," },
      { PLANTSTORE_JWT_AUDIENCE_CLAIM: "client_id" }, { PLANTSTORE_JWT_TYPE: "at+jwt" },
      { ...jwt, PLANTSTORE_JWT_KEYS_URLS: "issuer.example/keys" },
      { ...jwt, PLANTSTORE_JWT_KEYS_URLS: "http://192.0.2.1/keys" },
      { ...jwt, PLANTSTORE_JWT_KEYS_URLS: "http://127.0.0.1:9/a,http://127.0.0.1:9/b" },
      { PLANTSTORE_JWT_KEYS_FILE: keySet },
      ...each("PLANTSTORE_PROVIDER_SCOPES", "yes", "Ignored"), { PLANTSTORE_JWT_SCOPE_CLAIMS: "scope" },
    ] },
  { valid: [{}, introspection, { ...introspection, PLANTSTORE_INTROSPECTION_AUDIENCES: "plants" }], invalid: [
      ...each("PLANTSTORE_INTROSPECTION_URL", "127.0.0.1/introspect", "http://192.0.2.1/introspect", "/introspect"),
      ...[missing, empty, aFolder].map((file) => ({
        ...introspection,
        PLANTSTORE_INTROSPECTION_CLIENT_SECRET_FILE: file,
      })),
      { PLANTSTORE_INTROSPECTION_URL: introspection.PLANTSTORE_INTROSPECTION_URL },
      { ...introspection, PLANTSTORE_INTROSPECTION_AUDIENCES: "," },
      { PLANTSTORE_INTROSPECTION_SUBJECT_CLAIM: "client_id" }, { PLANTSTORE_INTROSPECTION_AUDIENCES: "plants" },
    ] },
  { valid: [{}, ...each("PLANTSTORE_PUBLIC_URL", "https://plants.example", "http://127.0.0.1/shop/")], invalid: each(
      "PLANTSTORE_PUBLIC_URL",
      "plants.example",
      "ftp://plants.example",
      "https://plants.example/?a=1",
      "/shop",
    ) },
  {
    // The settings are one group, because PROXY headers and TLS cannot be combined on a Unix socket.
    valid: [{}, proxies, { ...proxies, PLANTSTORE_PROXY_PROTOCOL: "on" },
      { ...proxies, PLANTSTORE_PROXY_FIELDS: "forwarded" }, tls, { ...proxies, ...tls }],
    invalid: [...each("PLANTSTORE_TRUSTED_PROXIES", "10.0.0.0/33", "10.0.0", "proxy", ",", "10.0.0.1/", "::/129"),
      { PLANTSTORE_PROXY_PROTOCOL: "on" }, ...each("PLANTSTORE_PROXY_FIELDS", "x-forwarded-for", "on", "forwarded"),
      { TLS_CERT_FILE: cert }, { TLS_KEY_FILE: key },
      ...[key, missing, empty, aFolder, other].map((file) => ({ ...tls, TLS_CERT_FILE: file })),
      ...[cert, otherKey, missing, empty, other].map((file) => ({ ...tls, TLS_KEY_FILE: file }))],
  },
  {
    valid: [{}, ...each("PLANTSTORE_ADMIN_ADDRESS", "0", "127.0.0.1:0", "localhost:0", `unix:${folder.file("admin")}`)],
    invalid: each(
      "PLANTSTORE_ADMIN_ADDRESS",
      `unix:${missing}/socket`,
      `unix:${other}`,
      "unix:",
      "999.1.1.1:0",
      "[::::]:0",
      "192.0.2.1:0",
      "127.0.0.1",
      ":0",
      "65536",
    ),
  },
  { valid: [{}], invalid: [{ PLANTSTORE_DOC: "open" }, { PLANTSTORE_PORT: "0" }] },
];

/** The defaults for every configuration here. */
const defaults = { DATABASE_URL: "memory:", PORT: "0", PLANTSTORE_DRAIN_DELAY_MS: "0" };

/** Returns what `check` prints about an invalid configuration, or `undefined` if it is valid. */
async function refusalOfCheck(environment: Environment): Promise<string | undefined> {
  const { exitCode, err } = await runCommand(["check"], environment);
  return exitCode === 0 ? undefined : err.join("\n");
}

/** Returns why a server with this configuration does not start, or `undefined` if it starts. */
async function refusalOfServe(environment: Environment): Promise<string | undefined> {
  try {
    const server = await startServer(readConfiguration({ environment, flags: {} }), {
      logDestination: { write: () => {} },
    });
    await server.drain();
    return undefined;
  } catch (reason) {
    return String(reason);
  }
}

/**
 * Expects `check` and `serve` to accept a valid configuration, and to refuse an invalid one with a message that names
 * an invalid variable. Expired certificates and unreachable issuers and PostgreSQL servers are not covered. `check`
 * reports them, but `serve` starts.
 */
async function expectAgreement(environment: Environment, invalid: readonly string[]): Promise<void> {
  const all = { ...defaults, ...environment };
  const refusals = [await refusalOfCheck(all), await refusalOfServe(all)];
  const name = invalid.length === 0 ? undefined : expect.stringMatching(`\\b(${invalid.join("|")})\\b`);
  expect(refusals).toEqual([name, name]);
}

const single = groups.flatMap(({ valid, invalid }) => [
  ...valid.map((environment) => ({ verb: "accept", environment, invalid: [] })),
  ...invalid.map((environment) => ({ verb: "refuse", environment, invalid: Object.keys(environment) })),
]);

test.each(single.map((value) => ({ ...value, name: nameOf(value.environment) })))(
  'check and serve agree on "$name"',
  async ({ environment, invalid }) => expectAgreement(environment, invalid),
);

/** Returns an environment as one line, which does not vary between runs. */
function nameOf(environment: Environment): string {
  const text = Object.entries(environment)
    .map(([variable, value]) => `${variable}=${value}`)
    .join(" ");
  return text.replaceAll(folder.path, "…") || "no settings";
}

/** Values for all groups, at most two of which are invalid. */
const configurations = fc
  .tuple(
    fc.tuple(...groups.map(({ valid }) => fc.constantFrom(...valid))),
    fc.uniqueArray(
      fc.constantFrom(
        ...groups.flatMap(({ invalid }, group) => invalid.map((environment) => ({ group, environment }))),
      ),
      { maxLength: 2, selector: ({ group }) => group },
    ),
  )
  .map(([valid, chosen]) => {
    const invalid = chosen.map(({ environment }) => environment);
    const others = valid.filter((_, index) => chosen.every(({ group }) => group !== index));
    const environment: Environment = Object.fromEntries([...others, ...invalid].flatMap(Object.entries<string>));
    return { environment, invalid: invalid.flatMap(Object.keys) };
  });

test("check and serve agree on random configurations", async () => {
  const rule = fc.asyncProperty(configurations, ({ environment, invalid }) => expectAgreement(environment, invalid));
  await fc.assert(rule, { numRuns: numRunsOf(200) });
});
