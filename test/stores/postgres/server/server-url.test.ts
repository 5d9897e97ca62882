import { execFileSync } from "node:child_process";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { Client, type ClientConfig } from "pg";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { StoreOpenError } from "../../../../src/stores/contract/store-options.ts";
import { assertSameDatabase, readServerUrl } from "../../../../src/stores/postgres/server/server-url.ts";
import { createCertificate } from "@protoport/testing/http";
import { createTempFolder } from "@protoport/testing/process";

const certificate = createCertificate("PostgreSQL");
const misspelt =
  "the database URL must be postgres://user:password@host:port/database, with %40 for @, %2F for / and %23 for # in a password, and without a space at the end";

describe("readServerUrl", () => {
  test.each(
    // oxfmt-ignore
    [
      ["postgres://ann:s%40cret@db.example:6543/plants", "db.example:6543/plants",
        { host: "db.example", port: 6543, user: "ann", password: "s@cret", database: "plants" }],
      ["postgresql://db/plants", "db:5432/plants", { host: "db", port: 5432, database: "plants" }],
      ["postgres://[::1]:1/p", "[::1]:1/p", { host: "::1", port: 1 }],
      ["postgres:///p?host=/run/pg&port=7&user=u&password=w", "/run/pg:7/p",
        { host: "/run/pg", port: 7, user: "u", password: "w" }],
      ["postgres://ann@/p?host=/run/pg", "/run/pg:5432/p", { host: "/run/pg", user: "ann" }],
      ["postgres://%2Frun%2Fpg/p", "/run/pg:5432/p", { host: "/run/pg" }],
      ["postgres://:7/p", "localhost:7/p", { host: "localhost", port: 7 }],
      ["postgres://db:65535/p", "db:65535/p", { port: 65_535 }],
      ["postgres://ann:a+b%2B?@db", "db:5432/ann", { user: "ann", password: "a+b+?" }],
      ["postgres://db:6/p?dbname=q&port=7", "db:7/q", { database: "q", port: 7 }],
      ["postgres://db/p?channel_binding=prefer", "db:5432/p", { enableChannelBinding: true }],
      ["postgres://db/p?channel_binding=require", "db:5432/p",
        { enableChannelBinding: true, requiresChannelBinding: true }],
      ["postgres://db/p?channel_binding=disable", "db:5432/p", { enableChannelBinding: false }],
      ["postgres://db/p?application_name=a&options=-c%20x=1", "db:5432/p",
        { application_name: "a", options: "-c x=1" }],
      // An unreachable server is detected sooner than after the system's default of two hours.
      ["postgres://db/p", "db:5432/p", { keepAlive: true, keepAliveInitialDelayMillis: 10_000 }],
      ["postgres://ann:secret@db/p", "db:5432/p", { enableChannelBinding: false }],
    ],
  )("reads %s as libpq does", (url, name, options) => {
    const server = readServerUrl(url);
    expect(server.name).toBe(name);
    expect(server.attempts[0]).toMatchObject(options);
  });

  test.each(
    // oxfmt-ignore
    [
      ...["mysql://db/p", "a postgres://db/p"].map((url) => ({ url, message: misspelt })),
      { url: "db/p", message: misspelt },
      { url: "postgres://ann:secret@db@b/p", message: misspelt },
      { url: "postgres://ann:sec/ret@db/p", message: misspelt },
      { url: "postgres://ann:1/secret@db", message: misspelt },
      ...["db:99999/p", "db:65536/p", "db:0/p", "db/p?port=abc", "db/p?port=1,2", "db/p?port=%207"].map((rest) => ({
        url: `postgres://ann:secret@${rest}`,
        message: "port in the database URL must be an integer between 1 and 65535" })),
      ...["a,b/p", "a:1,b:2/p", "/p?host=a,b", "a,b/p?port=7"].map((rest) => ({
        url: `postgres://ann:secret@${rest}`,
        message:
          "host in the database URL must be one address, such as the service's name, HAProxy or PgBouncer",
      })),
      ...["db:1e3/p", "db:abc/p", "db:%35432/p", "db/p#", "db/p?sslmode=require#", "db/p ", "db/p?port=7\n"].map(
        (rest) => ({ url: `postgres://ann:secret@${rest}`, message: misspelt }),
      ),
      // With a misspelt host, the password must not be read as a parameter of another host.
      ...["u:5432?application_name=secret@h:54x2", "u:?sslmode=secret@h:x/db", "u:5432?secret=1@[::1/db"].map((rest) => ({
        url: `postgres://${rest}`, message: misspelt })),
      ...["port=6&port=7", "sslmode=require&sslmode=prefer", "user=a&port=1&us%65r=b"].map((parameters) => ({
        url: `postgres://ann:secret@db/p?${parameters}`,
        message: `the database URL sets ${parameters.startsWith("user") ? "user" : parameters.split("=", 1)[0]} twice`,
      })),
      ...["[::1],b", "[::1]x", "x[::1]", "[::1]x:1"].map((host) => ({
        url: `postgres://ann:secret@${host}/p`, message: misspelt })),
      ...["0", "61", "5s", "-1", "1.5", ""].map((seconds) => ({
        url: `postgres://ann:secret@db/p?connect_timeout=${seconds}`,
        message: `connect_timeout in the database URL must be an integer between 1 and 60, got "${seconds}"` })),
      { url: "postgres://ann:secret@db/p?channel_binding=yes",
        message: 'channel_binding in the database URL must be one of disable, prefer, require, got "yes"' },
      ...["sslmode", "=1"].map((parameter) => ({
        url: `postgres://ann:secret@db/p?${parameter}`,
        message: "each parameter in the database URL must be name=value" })),
      ...["ann:secret%zz@db/p", "%zz@db/p?user=ann"].map((rest) => ({
        url: `postgres://${rest}`, message: "the database URL has an invalid percent escape" })),
      { url: "postgres://ann:secret@db/p?sslmod=require",
        message: "unsupported parameters in the database URL: sslmod" },
      { url: "postgres://ann:secret@db/p?sslmod=require&x=1",
        message: "unsupported parameters in the database URL: sslmod, x" },
      { url: "postgres://ann:secret@db/p?target_session_attrs=standby",
        message: 'target_session_attrs in the database URL must be one of any, read-write, primary, got "standby"' },
      { url: "postgres://ann:secret@db/p?sslmode=yes",
        message: 'sslmode in the database URL must be one of disable, prefer, require, verify-ca, verify-full, got "yes"' },
      { url: "postgres://ann:secret@db/p?sslmode=allow", message:
          'sslmode in the database URL must be one of disable, prefer, require, verify-ca, verify-full, got "allow"' },
      ...["require", "1", "on", "yes", "TRUE", "false", "prefer", "verify-full", ""].map((ssl) => ({
        url: `postgres://ann:secret@db/p?ssl=${ssl}`, message: `ssl in the database URL must be true, got "${ssl}"` })),
      ...["disable", "prefer"].map((mode) => ({
        url: `postgres://ann:secret@db/p?ssl=true&sslmode=${mode}`,
        message: `ssl=true in the database URL contradicts sslmode=${mode}` })),
      ...["disable", "prefer", "require", "verify-ca"].map((mode) => ({
        url: `postgres://ann:secret@db/p?sslrootcert=system&sslmode=${mode}`,
        message: `sslrootcert=system in the database URL requires sslmode=verify-full, got ${mode}` })),
      { url: "postgres://ann:secret@db/p?sslrootcert=system&ssl=true",
        message: "sslrootcert=system in the database URL requires sslmode=verify-full, got ssl=true" },
      ...["sslrootcert", "sslcert", "sslkey"].map((name) => ({
        url: `postgres://ann:secret@db/p?${name}=`,
        message: `${name} in the database URL must be the path of a file in PEM, got ""` })),
      ...["sslcert", "sslkey"].map((name) => ({
        url: `postgres://ann:secret@db/p?${name}=file.pem`,
        message: "sslcert and sslkey in the database URL must be set together" })),
      { url: "postgres://ann:secret@db/p?sslcert=system&sslkey=system", message:
          "cannot use system, which is named in the database URL: ENOENT: no such file or directory, open 'system'" },
      ...["-", "-1", "-c", "-cx", "x=1", "--=1", "-c=1", "require"].map((option) => ({
        url: `postgres://ann:secret@db/p?options=-cx=1%20${option}`,
        message: `options in the database URL must consist of -c name=value, --name=value and switches such as -e, got "${option}"`,
      })),
      ...["user", "password", "dbname", "application_name", "options", "host", "sslmode%00x"].map((name) => ({
        url: `postgres://ann:secret@db/p?${name}=a%00b`, message: "the database URL must not contain %00" })),
      { url: "postgres://ann:secret@db/p?sslmode=verify-ca&sslrootcert=/nowhere/ca.pem", message:
          "cannot use /nowhere/ca.pem, which is named in the database URL: ENOENT: no such file or directory, open '/nowhere/ca.pem'" },
      { url: "postgres://ann:secret@db/p?sslrootcert=/dev/zero",
        message: "cannot use /dev/zero, which is named in the database URL: /dev/zero is not a regular file" },
    ],
  )("refuses $url without showing the password", ({ url, message }) => {
    expect(() => readServerUrl(url)).toThrow(StoreOpenError);
    expect(() => readServerUrl(url)).toThrow(new StoreOpenError(message));
  });

  test.each(["sslrootcert", "sslcert", "sslkey"])("refuses a named pipe as %s if it has no writer", (parameter) => {
    using folder = createTempFolder();
    const pipe = folder.file("pipe");
    execFileSync("mkfifo", [pipe]);
    const message = `cannot use ${pipe}, which is named in the database URL: ${pipe} is not a regular file`;
    const other = parameter === "sslrootcert" ? "" : `&${parameter === "sslcert" ? "sslkey" : "sslcert"}=${pipe}`;
    expect(() => readServerUrl(`postgres://db/p?${parameter}=${pipe}${other}`)).toThrow(new StoreOpenError(message));
  });

  test.each([
    { target: "any", url: "postgres://a/p" },
    { target: "any", url: "postgres://a/p?target_session_attrs=any" },
    { target: "primary", url: "postgres://a/p?target_session_attrs=primary" },
    { target: "read-write", url: "postgres://a/p?target_session_attrs=read-write" },
  ])('returns the target "$target" for "$url"', ({ target, url }) => expect(readServerUrl(url).target).toBe(target));

  test.each([
    { url: "postgres://a/p", connectionTimeoutMillis: 5_000 },
    { url: "postgres://a/p?connect_timeout=1", connectionTimeoutMillis: 1_000 },
    { url: "postgres://a/p?connect_timeout=60", connectionTimeoutMillis: 60_000 },
  ])('sets a connection timeout of $connectionTimeoutMillis ms for "$url"', ({ url, connectionTimeoutMillis }) => {
    expect(readServerUrl(url).attempts).toMatchObject([{ connectionTimeoutMillis }, { connectionTimeoutMillis }]);
  });

  // postgresql.org/docs/current/libpq-ssl.html, table 34.1.
  test.each([
    { mode: "disable", attempts: ["cleartext"] },
    { mode: "prefer", attempts: ["any certificate", "cleartext"] },
    { mode: undefined, attempts: ["any certificate", "cleartext"] },
    { mode: "require", attempts: ["any certificate"] },
    { mode: "verify-ca", attempts: ["a certificate of the authority"] },
    { mode: "verify-full", attempts: ["the host's certificate"] },
  ])("with sslmode=$mode returns the same TLS attempts as libpq", ({ mode, attempts }) => {
    const url = mode === undefined ? "postgres://db/p" : `postgres://db/p?sslmode=${mode}`;
    expect(attemptsOf(url).map(({ ssl }) => tlsWords(ssl))).toEqual(attempts);
  });

  test("treats ssl=true like sslmode=require", () =>
    expect(attemptsOf("postgres://db/p?ssl=true").map(({ ssl }) => tlsWords(ssl))).toEqual(["any certificate"]));

  test("verifies the authority for sslmode=require with a root certificate", () => {
    using folder = createTempFolder();
    writeFileSync(folder.file("ca.pem"), certificate.cert);
    const url = `postgres://db/p?sslmode=require&sslrootcert=${folder.file("ca.pem")}`;
    const [options] = attemptsOf(url);
    expect(tlsWords(options?.ssl)).toBe("a certificate of the authority");
    expect(options?.ssl).toMatchObject({ ca: certificate.cert });
  });

  test.each(["", "&sslmode=verify-full"])(
    "with sslrootcert=system%s verifies the host without an authority file",
    (rest) => {
      const attempts = attemptsOf(`postgres://db/p?sslrootcert=system${rest}`);
      expect(attempts.map(({ ssl }) => tlsWords(ssl))).toEqual(["the host's certificate"]);
      expect(attempts[0]?.ssl).not.toHaveProperty("ca");
    },
  );

  test("allows no cleartext with a certificate and without sslmode", () => {
    using folder = createTempFolder();
    for (const name of ["sslrootcert", "sslcert"]) writeFileSync(folder.file(name), certificate.cert);
    writeFileSync(folder.file("sslkey"), certificate.key);
    const pair = `sslcert=${folder.file("sslcert")}&sslkey=${folder.file("sslkey")}`;
    const authority = `sslrootcert=${folder.file("sslrootcert")}`;
    const wordsOf = (parameters: string) => attemptsOf(`postgres://db/p?${parameters}`).map(({ ssl }) => tlsWords(ssl));
    expect(wordsOf(authority)).toEqual(["a certificate of the authority"]);
    expect(wordsOf(pair)).toEqual(["any certificate"]);
    expect(wordsOf(`${authority}&sslmode=prefer`)).toEqual(["any certificate", "cleartext"]);
  });

  test.each(["-c search_path=a -c x.y=1", "-cx=1", "--search-path=a", "endpoint=ep-cool", "-e -d3", ""])(
    'accepts options="%s"',
    (options) =>
      expect(attemptsOf(`postgres://db/p?options=${encodeURIComponent(options)}`)[0]?.options ?? "").toBe(options),
  );

  test.each([
    { name: "an unreadable file", rest: "?sslrootcert=/nowhere/ca.pem", cause: { code: "ENOENT" } },
    { name: "an invalid percent escape", rest: "%zz", cause: { name: "URIError" } },
  ])("throws an error with a cause for $name in the URL", ({ rest, cause }) => {
    expect(() => readServerUrl(`postgres://db/p${rest}`)).toThrow(
      expect.objectContaining({ cause: expect.objectContaining(cause) }),
    );
  });

  test("returns the client certificate and its key", () => {
    using folder = createTempFolder();
    writeFileSync(folder.file("sslcert"), certificate.cert);
    writeFileSync(folder.file("sslkey"), certificate.key);
    const [options] = attemptsOf(`postgres://db/p?sslcert=${folder.file("sslcert")}&sslkey=${folder.file("sslkey")}`);
    expect(options?.ssl).toMatchObject(certificate);
  });

  test("does not use TLS on a Unix socket", () => {
    const attempts = attemptsOf("postgres:///p?host=/run/pg&sslmode=require");
    expect(attempts.map(({ ssl }) => tlsWords(ssl))).toEqual(["cleartext"]);
  });
});

const attemptsOf = (url: string): readonly ClientConfig[] => readServerUrl(url).attempts;

function tlsWords(ssl: unknown): string {
  if (ssl === false) return "cleartext";
  const { rejectUnauthorized, checkServerIdentity } = Object(ssl);
  if (rejectUnauthorized === false) return "any certificate";
  // The option must always be set, because otherwise the variable NODE_TLS_REJECT_UNAUTHORIZED would apply.
  expect(rejectUnauthorized).toBe(true);
  const problem = checkServerIdentity("db", { subject: { CN: "other" }, subjectaltname: "DNS:other" });
  return problem === undefined ? "a certificate of the authority" : "the host's certificate";
}

// postgresql.org/docs/18/libpq-connect.html#LIBPQ-PARAMKEYWORDS, and `ssl` in URLs for Java.
const parametersOfLibpq = `
  host hostaddr port dbname user password passfile require_auth channel_binding connect_timeout client_encoding options
  application_name fallback_application_name keepalives keepalives_idle keepalives_interval keepalives_count
  tcp_user_timeout replication gssencmode sslmode ssl requiressl sslnegotiation sslcompression sslcert sslkey
  sslkeylogfile sslpassword sslcertmode sslrootcert sslcrl sslcrldir sslsni requirepeer ssl_min_protocol_version
  ssl_max_protocol_version min_protocol_version max_protocol_version krbsrvname gsslib gssdelegation scram_client_key
  scram_server_key service servicefile target_session_attrs load_balance_hosts oauth_issuer oauth_client_id
  oauth_client_secret oauth_scope`;

/** The parameters in the table in docs/reference/postgresql.md. */
function documentedParameters(): readonly string[] {
  const page = readFileSync(new URL("../../../../docs/reference/postgresql.md", import.meta.url), "utf8");
  const [, table = ""] = /^\| parameter \| value \|\n\|---\|---\|\n((?:\|.*\n)+)/m.exec(page) ?? [];
  // The second column contains values, except for `ssl`, the alternative to sslmode.
  return [...table.split("\n").flatMap((row) => row.split("|")[1]?.match(/\w+/g) ?? []), "ssl"];
}

test("docs/reference/postgresql.md lists only libpq parameters", () => {
  expect(documentedParameters()).toHaveLength(15);
  expect(parametersOfLibpq.match(/\w+/g)).toEqual(expect.arrayContaining([...documentedParameters()]));
});

test.each(parametersOfLibpq.match(/\w+/g) ?? [])(
  "%s is documented in docs/reference/postgresql.md or refused by name",
  (name) => {
    // A value that is invalid for every parameter that does not accept any string.
    const refusal = refusalOf(`postgres://db/p?${name}=%20`);
    const isDocumented = documentedParameters().includes(name);
    expect(refusal.includes(`unsupported parameters in the database URL: ${name}`)).toBe(!isDocumented);
  },
);

test.each([
  { options: "-c a=1 -cb=2 --c-d=3 -e", settings: { a: "1", b: "2", c_d: "3" } },
  { options: "-c a=\\ -c -e", settings: { a: " -c" } },
])("readServerUrl reads the settings in options=$options as libpq does", ({ options, settings }) => {
  const server = readServerUrl(`postgres://db/p?options=${encodeURIComponent(options)}`);
  expect(Object.fromEntries(server.settings)).toEqual(settings);
});

function refusalOf(url: string): string {
  try {
    readServerUrl(url);
    return "";
  } catch (fault) {
    return String(fault);
  }
}

test.each([
  { url: "postgres://ann@db/p", variable: "PGDATABASE", environment: { PGDATABASE: "q" }, name: "db:5432/p" },
  { url: "postgres://ann@db", variable: "PGDATABASE", environment: { PGDATABASE: "q" }, name: "db:5432/q" },
  { url: "postgres://ann@db", variable: "PGUSER", environment: { PGUSER: "bob" }, name: "db:5432/ann" },
  { url: "postgres://db", variable: "PGUSER", environment: { PGUSER: "bob" }, name: "db:5432/bob" },
])("readServerUrl returns the driver's database for $url with $variable set", ({ url, environment, name }) => {
  for (const [variable, value] of Object.entries(environment)) vi.stubEnv(variable, value);
  onTestFinished(() => void vi.unstubAllEnvs());
  expect(readServerUrl(url).name).toBe(name);
  // The driver's client must connect to that database.
  const [options] = readServerUrl(url).attempts;
  expect(`db:5432/${new Client(options).database}`).toBe(name);
});

test.each(["USER", "USERNAME"])("readServerUrl reads the default database from %s, as the driver does", (variable) => {
  for (const name of ["USER", "USERNAME"]) vi.stubEnv(name, name === variable ? "eve" : undefined);
  onTestFinished(() => void vi.unstubAllEnvs());
  expect(readServerUrl("postgres://db").name).toBe("db:5432/eve");
});

test("the last certificate is used while the certificate file is missing", () => {
  using folder = createTempFolder();
  const authority = folder.file("replaced.pem");
  const url = `postgres://old:word@a/p?sslmode=verify-full&sslrootcert=${authority}`;
  writeFileSync(authority, certificate.cert);
  const followed = readServerUrl(url, () => url);
  const { cert } = createCertificate("second");
  writeFileSync(authority, cert);
  const ca = (): unknown => followed.attempts[0]?.ssl;
  expect(ca()).toMatchObject({ ca: cert });
  rmSync(authority);
  expect(ca()).toMatchObject({ ca: cert });
  // The URL still names the same database.
  expect(() => assertSameDatabase(url, url.replace("old:word", "new:word"))).not.toThrow();
});

const formerUrl = "postgres://old:word@a:1/plants_staging?options=-cx%3D1&sslmode=disable";

test.each([
  { name: "another user and password", text: formerUrl.replace("old:word", "new:pass") },
  {
    name: "another user and password as parameters",
    first: "postgres://a/p?user=old&password=one",
    text: "postgres://a/p?user=new&password=two",
  },
  { name: "another password and no database", first: "postgres://old:word@a", text: "postgres://old:new@a" },
  { name: "another user and dbname", first: "postgres://old@a?dbname=p", text: "postgres://new@a?dbname=p" },
])("a new URL with $name is used", ({ first = formerUrl, text }) => {
  expect(() => assertSameDatabase(first, text)).not.toThrow();
  expect({ ...readServerUrl(first, () => text) }).toEqual(readServerUrl(text));
});

test.each([
  { name: "a shorter database", text: "postgres://new:word@a:1/plants" },
  { name: "no parameters", text: "postgres://new:word@a:1/plants_staging" },
  { name: "no sslmode", text: "postgres://new:word@a:1/plants_staging?options=-cx%3D1" },
  { name: "other options", text: "postgres://new:word@a:1/plants_staging?options=-cx&sslmode=disable" },
  { name: "another host", text: "postgres://new:word@b:1/plants_staging?options=-cx%3D1&sslmode=disable" },
  { name: "another port", text: "postgres://new:word@a/plants_staging?options=-cx%3D1&sslmode=disable" },
  { name: "another user parameter and no database", first: "postgres://a?user=o", text: "postgres://a?user=n" },
  { name: "another user and no database", first: "postgres://old:word@a", text: "postgres://new:word@a" },
  { name: "half of the text", text: "postgres://half:wri" },
  { name: "the scheme https", text: "https://a/" },
])("a new URL with $name is refused", ({ first = formerUrl, text }) => {
  expect(() => assertSameDatabase(first, text)).toThrow(StoreOpenError);
  expect({ ...readServerUrl(first, () => first) }).toEqual(readServerUrl(first));
});
