import { readdirSync, writeFileSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { expect, test, vi } from "vitest";
import { openDatabase } from "../../src/stores/sqlite/database.ts";
import { createCertificate } from "@protoport/testing/http";
import { createTempFolder, freePort, type TempFolder } from "@protoport/testing/process";
import { createMissingStore } from "../support/plants/sqlite-file.ts";
import { type Ended, runCommand } from "../support/process/run-command.ts";
import { startConfigured } from "../support/server/start-configured.ts";
import { startOtlpReceiver } from "../../protoport/testing/src/telemetry/otlp-receiver.ts";

/** Runs `check` with the store `plants.db` in the folder, which is created if it is missing. */
function check(folder: TempFolder, environment: Record<string, string> = {}): Promise<Ended> {
  createMissingStore(folder.file("plants.db"));
  return runCommand(["check"], { DATABASE_URL: `sqlite:${folder.file("plants.db")}`, ...environment });
}

const valid = "the configuration is valid";
const notAsked = `${valid}; no running server was asked, because PLANTSTORE_ADMIN_ADDRESS is not set`;
const good = { exitCode: 0, out: [], err: [notAsked] };

test("check leaves no files next to a store that is not open", async () => {
  using folder = createTempFolder();
  const file = folder.file("plants #1?.db");
  createMissingStore(file);
  expect(await check(folder, { DATABASE_URL: `sqlite:${file}` })).toEqual(good);
  expect(readdirSync(folder.path)).toEqual(["plants #1?.db", "plants.db"]);
});

test("check passes while a server uses the store", async () => {
  using folder = createTempFolder();
  using _ = openDatabase({ file: folder.file("plants.db"), migrates: true });
  expect(await check(folder)).toEqual(good);
});

test("check accepts the next release's schema without changing it", async () => {
  using folder = createTempFolder();
  using db = openDatabase({ file: folder.file("plants.db"), migrates: true });
  db.exec("PRAGMA user_version = 2");
  expect(await check(folder)).toEqual(good);
  expect(db.prepare("PRAGMA user_version").get()).toEqual({ user_version: 2n });
});

test("check reports invalid OpenTelemetry variables, and exports nothing", async () => {
  await using collector = await startOtlpReceiver();
  using folder = createTempFolder();
  vi.stubEnv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url);
  vi.stubEnv("OTEL_TRACES_SAMPLER", "sometimes");
  expect(await check(folder).finally(() => vi.unstubAllEnvs())).toEqual({
    ...good,
    err: ['OpenTelemetry: unknown OTEL_TRACES_SAMPLER value "sometimes", using default', ...good.err],
  });
  expect(collector.requests).toEqual([]);
});

test.each([
  ["traces", "OTEL_TRACES_EXPORTER", "OpenTelemetry: Unrecognized OTEL_TRACES_EXPORTER value: nowhere."],
  [
    "metrics",
    "OTEL_METRICS_EXPORTER",
    "OpenTelemetry: OTEL_METRICS_EXPORTER must be otlp or none, got nowhere; using otlp",
  ],
])("check reports an unknown %s exporter, and passes", async (_name, variable, want) => {
  using folder = createTempFolder();
  vi.stubEnv(variable, "nowhere");
  const { exitCode, err } = await check(folder).finally(() => vi.unstubAllEnvs());
  expect({ exitCode, err }).toEqual({ exitCode: 0, err: expect.arrayContaining([want]) });
});

test("check fails when the database belongs to another program", async () => {
  using folder = createTempFolder();
  using db = new DatabaseSync(folder.file("plants.db"));
  db.exec("CREATE TABLE mail (id INTEGER)");
  const { exitCode, err } = await check(folder);
  expect({ exitCode, err }).toEqual({ exitCode: 1, err: [expect.stringContaining("database of another program")] });
});

test.each<[name: string, environment: Readonly<Record<string, string>>, want: string]>(
  // oxfmt-ignore
  [
    ["an address of another machine", { HOST: "192.0.2.1", PLANTSTORE_TOKENS: "a-token-of-the-check" },
      'cannot listen on HOST: it must be an address of this machine, got "192.0.2.1"'],
    ["an unknown host name", { HOST: "plants.invalid", PLANTSTORE_TOKENS: "a-token-of-the-check" },
      "cannot listen on HOST"],
    ["a socket in a directory that does not exist", { HOST: "unix:nowhere/http.sock" }, "cannot listen on HOST"],
    ["a socket path that is a regular file", { HOST: "unix:file" }, "file is not a socket"],
    ["an admin address of another machine", { PLANTSTORE_ADMIN_ADDRESS: "192.0.2.1:0" },
      "cannot listen on PLANTSTORE_ADMIN_ADDRESS"],
  ],
)("%s is refused by check and serve", async (_name, environment, want) => {
  using folder = createTempFolder();
  writeFileSync(folder.file("file"), "");
  const { HOST = "127.0.0.1" } = environment;
  const host = HOST.startsWith("unix:") ? `unix:${folder.file(HOST.slice("unix:".length))}` : HOST;
  const { exitCode, err } = await check(folder, { ...environment, HOST: host });
  expect({ exitCode, err: err.join("\n") }).toEqual({ exitCode: 78, err: expect.stringContaining(want) });
  await expect(startConfigured({ ...environment, HOST: host })).rejects.toThrow(/HOST|PLANTSTORE_ADMIN_ADDRESS/);
});

test("check and serve refuse the same socket for HOST and PLANTSTORE_ADMIN_ADDRESS", async () => {
  using folder = createTempFolder();
  const socket = `unix:${folder.file("socket")}`;
  const environment = { HOST: socket, PLANTSTORE_ADMIN_ADDRESS: socket };
  const want = "PLANTSTORE_ADMIN_ADDRESS must use another socket than HOST";
  const { exitCode, err } = await check(folder, environment);
  expect({ exitCode, err: err.join("\n") }).toEqual({ exitCode: 78, err: expect.stringContaining(want) });
  await expect(startConfigured(environment)).rejects.toThrow(want);
});

test("check passes while a server uses the same socket and ports", async () => {
  using folder = createTempFolder();
  const environment = { HOST: `unix:${folder.file("http.sock")}`, PLANTSTORE_ADMIN_ADDRESS: "127.0.0.1:0" };
  await using server = await startConfigured(environment);
  const admin = `127.0.0.1:${String(server.admin?.port)}`;
  const err = [`the server at ${admin} reports no problem`, valid];
  expect(await check(folder, { ...environment, PLANTSTORE_ADMIN_ADDRESS: admin })).toEqual({ ...good, err });
});

test.each(["DATABASE_URL", "DATABASE_URL_FILE"])("check reports %s when PostgreSQL is unreachable", async (name) => {
  using folder = createTempFolder();
  const url = "postgres://127.0.0.1:1/plants";
  writeFileSync(folder.file("url"), url);
  const urls = { DATABASE_URL: "", [name]: name === "DATABASE_URL" ? url : folder.file("url") };
  const { exitCode, err } = await check(folder, urls);
  const want = expect.stringMatching(`^plantstore: ${name}: cannot use 127\\.0\\.0\\.1:1/plants`);
  expect({ exitCode, err }).toEqual({ exitCode: 1, err: [want] });
});

test.each([
  { name: "is empty", content: "" },
  { name: "contains only comments", content: "# sha256:… ci plants:delete -\n\n" },
])("a token hashes file that $name causes a warning in check", async ({ content }) => {
  using folder = createTempFolder();
  const file = folder.file("tokens");
  writeFileSync(file, content);
  const warning = `warning: file of token hashes is empty; none of its tokens is accepted ${JSON.stringify({ path: file })}`;
  expect(await check(folder, { PLANTSTORE_TOKEN_HASHES_FILE: file })).toEqual({ ...good, err: [warning, ...good.err] });
  await using server = await startConfigured({ PLANTSTORE_TOKEN_HASHES_FILE: file });
  const call = { method: "DELETE", headers: { authorization: "Bearer a-revoked-token" } };
  const { headers } = await fetch(`${server.baseUrl}/plants/1`, call);
  expect(headers.get("www-authenticate")).toContain('error="invalid_token"');
});

test("check warns when the certificate expires soon", async () => {
  using folder = createTempFolder();
  const { cert, key } = createCertificate("plants", new Date(Date.now() + 86_400_000));
  writeFileSync(folder.file("cert.pem"), cert);
  writeFileSync(folder.file("key.pem"), key);
  const files = { TLS_CERT_FILE: folder.file("cert.pem"), TLS_KEY_FILE: folder.file("key.pem") };
  const { exitCode, err } = await check(folder, files);
  const want = { exitCode: 0, err: [expect.stringContaining("warning: certificate expires soon"), ...good.err] };
  expect({ exitCode, err }).toEqual(want);
});

test.each(
  // oxfmt-ignore
  [
    { name: "is not PEM", createPair: () => ({ cert: "no certificate", key: "no certificate" }),
      problem: "cannot use TLS_CERT_FILE and TLS_KEY_FILE: " },
    { name: "has expired", createPair: () => createCertificate("plants", new Date("2020-03-01T00:00:00Z")),
      problem: "the certificate of TLS_CERT_FILE expired at 2020-03-01T00:00:00.000Z" },
    { name: "is not valid yet",
      createPair: () => createCertificate("plants", undefined, new Date("2098-01-01T00:00:00Z")),
      problem: "the certificate of TLS_CERT_FILE is not valid before 2098-01-01T00:00:00.000Z" },
  ],
)("check with a certificate that $name fails", async ({ createPair, problem }) => {
  using folder = createTempFolder();
  const { cert, key } = createPair();
  writeFileSync(folder.file("cert.pem"), cert);
  writeFileSync(folder.file("key.pem"), key);
  const files = { TLS_CERT_FILE: folder.file("cert.pem"), TLS_KEY_FILE: folder.file("key.pem") };
  const { exitCode, err } = await check(folder, files);
  expect({ exitCode, err: err.join("\n") }).toEqual({ exitCode: 78, err: expect.stringContaining(problem) });
});

test("check fails when the token issuer is unreachable", async () => {
  using folder = createTempFolder();
  const { exitCode, err } = await check(folder, {
    PLANTSTORE_JWT_ISSUERS: "https://issuer.example",
    PLANTSTORE_JWT_AUDIENCES: "plants",
    PLANTSTORE_JWT_KEYS_URLS: `http://127.0.0.1:${await freePort()}/keys`,
  });
  expect({ exitCode, err: err.join("\n") }).toEqual({
    exitCode: 1,
    err: expect.stringContaining("tokens cannot be verified: no usable keys for https://issuer.example"),
  });
});
