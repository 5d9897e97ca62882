import { readdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { once } from "node:events";
import { DatabaseSync } from "node:sqlite";
import { expect, test, vi } from "vitest";
import { openDatabase } from "../../src/stores/sqlite/database.ts";
import { createCertificate } from "../../packages/testing/src/carriers/certificate.ts";
import { createMissingStore } from "../support/plants/sqlite-file.ts";
import { type Ended, runCommand } from "../support/process/run-command.ts";
import { createTempFolder, type TempFolder } from "../../packages/testing/src/process/temp-folder.ts";
import { startConfigured } from "../support/server/start-configured.ts";
import { startOtlpReceiver } from "../../packages/testing/src/telemetry/otlp-receiver.ts";

/** Runs `check` of a configuration whose store is `plants.db` in the folder, and is created if there is none. */
function check(folder: TempFolder, environment: Record<string, string> = {}): Promise<Ended> {
  createMissingStore(folder.file("plants.db"));
  return runCommand(["check"], { DATABASE_URL: `sqlite:${folder.file("plants.db")}`, ...environment });
}

const good = { exitCode: 0, out: [], err: ["the configuration can be used"] };

test("check leaves nothing beside a store that nobody has open", async () => {
  using folder = createTempFolder();
  const file = folder.file("plants #1?.db");
  createMissingStore(file);
  expect(await check(folder, { DATABASE_URL: `sqlite:${file}` })).toEqual(good);
  expect(readdirSync(folder.path)).toEqual(["plants #1?.db", "plants.db"]);
});

test("check names the settings whose line end it has removed", async () => {
  using folder = createTempFolder();
  const err = ["a line end after the value of PORT was removed", ...good.err];
  expect(await check(folder, { PORT: "8080\n" })).toEqual({ ...good, err });
});

test("check passes beside a server that holds the store", async () => {
  using folder = createTempFolder();
  using db = openDatabase({ file: folder.file("plants.db"), migrates: true });
  db.exec("BEGIN IMMEDIATE");
  expect(await check(folder)).toEqual(good);
});

test("check accepts the schema of the next release and leaves it as it is", async () => {
  using folder = createTempFolder();
  using db = openDatabase({ file: folder.file("plants.db"), migrates: true });
  db.exec("PRAGMA user_version = 2");
  expect(await check(folder)).toEqual(good);
  expect(db.prepare("PRAGMA user_version").get()).toEqual({ user_version: 2n });
});

test("check names the variables of OpenTelemetry that are not understood, and sends nothing", async () => {
  await using collector = await startOtlpReceiver();
  using folder = createTempFolder();
  vi.stubEnv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url);
  vi.stubEnv("OTEL_TRACES_SAMPLER", "sometimes");
  const checked = await check(folder).finally(() => vi.unstubAllEnvs());
  expect(checked).toEqual({
    ...good,
    err: ['OpenTelemetry: unknown OTEL_TRACES_SAMPLER value "sometimes", using default', ...good.err],
  });
  expect(collector.requests).toEqual([]);
});

test.each<{ name: string; content: Uint8Array; want: string }>([
  { name: "no database", content: Buffer.from("dahlia ".repeat(200)), want: "the file is not an SQLite database" },
])("check names a file that is $name", async ({ content, want }) => {
  using folder = createTempFolder();
  writeFileSync(folder.file("plants.db"), content);
  const { exitCode, err } = await check(folder);
  expect({ exitCode, err }).toEqual({ exitCode: 1, err: [expect.stringContaining(want)] });
});

test("check names the database of another program", async () => {
  using folder = createTempFolder();
  using db = new DatabaseSync(folder.file("plants.db"));
  db.exec("CREATE TABLE mail (id INTEGER)");
  const { exitCode, err } = await check(folder);
  expect({ exitCode, err }).toEqual({ exitCode: 1, err: [expect.stringContaining("another program's")] });
});

test.each([
  { name: "a setting", environment: { PORT: "x" }, want: "PORT must be" },
  { name: "a setting's name", environment: { PLANTSTORE_DOC: "open" }, want: "did you mean PLANTSTORE_DOCS?" },
])("check tells what is wrong with $name", async ({ environment, want }) => {
  using folder = createTempFolder();
  const { exitCode, err } = await check(folder, environment);
  expect({ exitCode, err: err.join("\n") }).toEqual({ exitCode: 78, err: expect.stringContaining(want) });
});

test.each<{ name: string; environment: Readonly<Record<string, string>>; want: string }>([
  { name: "an address that is none", environment: { HOST: "999.1.1.1" }, want: "HOST must be an IP address" },
  {
    name: "an address of another machine",
    environment: { HOST: "192.0.2.1", PLANTSTORE_TOKENS: "a-token-of-the-check" },
    want: "HOST cannot be listened on: listen EADDRNOTAVAIL",
  },
  {
    name: "an unknown name",
    environment: { HOST: "plants.invalid", PLANTSTORE_TOKENS: "a-token-of-the-check" },
    want: "HOST cannot",
  },
  {
    name: "a socket in no folder",
    environment: { HOST: "unix:nowhere/http.sock" },
    want: "HOST cannot be listened on",
  },
  { name: "a socket in the place of a file", environment: { HOST: "unix:file" }, want: "file is no socket" },
  {
    name: "an admin address that is none",
    environment: { PLANTSTORE_ADMIN_ADDRESS: "999.1.1.1:0" },
    want: "PLANTSTORE_ADMIN_ADDRESS must be a port",
  },
  {
    name: "an admin address in brackets that is none",
    environment: { PLANTSTORE_ADMIN_ADDRESS: "[::::]:0" },
    want: "PLANTSTORE_ADMIN_ADDRESS must be a port",
  },
  {
    name: "an admin address of another machine",
    environment: { PLANTSTORE_ADMIN_ADDRESS: "192.0.2.1:0" },
    want: "PLANTSTORE_ADMIN_ADDRESS cannot be listened on",
  },
  {
    name: "one port for both",
    environment: {
      HOST: "0.0.0.0",
      PORT: "9464",
      PLANTSTORE_ADMIN_ADDRESS: "9464",
      PLANTSTORE_TOKENS: "a-token-of-the-check",
    },
    want: "PLANTSTORE_ADMIN_ADDRESS must have another port than PORT",
  },
])("check and serve refuse $name", async ({ environment, want }) => {
  using folder = createTempFolder();
  writeFileSync(folder.file("file"), "");
  const { HOST = "127.0.0.1" } = environment;
  const host = HOST.startsWith("unix:") ? `unix:${folder.file(HOST.slice("unix:".length))}` : HOST;
  const { exitCode, err } = await check(folder, { ...environment, HOST: host });
  expect({ exitCode, err: err.join("\n") }).toEqual({ exitCode: 78, err: expect.stringContaining(want) });
  const serving = startConfigured({ ...environment, HOST: host });
  await expect(serving).rejects.toThrow(/HOST|PLANTSTORE_ADMIN_ADDRESS/);
});

test("check passes next to a server on the same socket and ports", async () => {
  using folder = createTempFolder();
  const environment = { HOST: `unix:${folder.file("http.sock")}`, PLANTSTORE_ADMIN_ADDRESS: "127.0.0.1:0" };
  await using server = await startConfigured(environment);
  const admin = `127.0.0.1:${String(server.admin?.port)}`;
  expect(await check(folder, { ...environment, PLANTSTORE_ADMIN_ADDRESS: admin })).toEqual(good);
});

test.each(["DATABASE_URL", "DATABASE_URL_FILE"])(
  "check names %s when its PostgreSQL cannot be reached",
  async (name) => {
    using folder = createTempFolder();
    const url = "postgres://127.0.0.1:1/plants";
    writeFileSync(folder.file("url"), url);
    const urls = { DATABASE_URL: "", [name]: name === "DATABASE_URL" ? url : folder.file("url") };
    const { exitCode, err } = await check(folder, urls);
    const want = expect.stringMatching(`^plantstore: ${name}: cannot use 127\\.0\\.0\\.1:1/plants`);
    expect({ exitCode, err }).toEqual({ exitCode: 1, err: [want] });
  },
);

test("check tells which line of the token hashes has a scope that nothing requires", async () => {
  using folder = createTempFolder();
  const file = folder.file("tokens");
  writeFileSync(file, `# who may delete\nsha256:${"a".repeat(64)} ci plants:delte -\n`);
  const { exitCode, err } = await check(folder, { PLANTSTORE_TOKEN_HASHES_FILE: file });
  expect({ exitCode, err: err.join("\n") }).toEqual({
    exitCode: 78,
    err: expect.stringMatching(/line 2: .*plants:delte; did you mean plants:delete\?/),
  });
});

test("check tells that a certificate does not fit its key", async () => {
  using folder = createTempFolder();
  const file = folder.file("pem");
  writeFileSync(file, "no certificate");
  const { exitCode, err } = await check(folder, { TLS_CERT_FILE: file, TLS_KEY_FILE: file });
  expect({ exitCode, err: err.join("\n") }).toEqual({
    exitCode: 78,
    err: expect.stringContaining("do not make a TLS server"),
  });
});

test("check tells that the certificate has expired", async () => {
  using folder = createTempFolder();
  const { cert, key } = createCertificate("plants", new Date("2020-03-01T00:00:00Z"));
  writeFileSync(folder.file("cert.pem"), cert);
  writeFileSync(folder.file("key.pem"), key);
  const files = { TLS_CERT_FILE: folder.file("cert.pem"), TLS_KEY_FILE: folder.file("key.pem") };
  const { exitCode, err } = await check(folder, files);
  expect({ exitCode, err: err.join("\n") }).toEqual({
    exitCode: 78,
    err: expect.stringContaining("the certificate of TLS_CERT_FILE expired at 2020-03-01T00:00:00.000Z"),
  });
});

test("check fails when the issuer of the tokens cannot be reached", async () => {
  using folder = createTempFolder();
  const closed = createServer().listen(0, "127.0.0.1");
  await once(closed, "listening");
  const address = closed.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  closed.close();
  const { exitCode, err } = await check(folder, {
    PLANTSTORE_JWT_ISSUER: "https://issuer.example",
    PLANTSTORE_JWT_AUDIENCE: "plants",
    PLANTSTORE_JWKS_URL: `http://127.0.0.1:${port}/keys`,
  });
  expect({ exitCode, err: err.join("\n") }).toEqual({
    exitCode: 1,
    err: expect.stringContaining("tokens cannot be verified: no usable keys for https://issuer.example"),
  });
});
