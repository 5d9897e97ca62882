import { once } from "node:events";
import { appendFileSync, writeFileSync } from "node:fs";
import { connect, type TLSSocket } from "node:tls";
import { expect, test, vi } from "vitest";
import { type Certificate, createCertificate, exchangeHttp1 } from "@protoport/testing/http";
import { createTempFolder, type TempFolder, within } from "@protoport/testing/process";
import { type ConfiguredServer, startConfigured } from "../support/server/start-configured.ts";

function put(folder: TempFolder, { cert, key }: Certificate): void {
  writeFileSync(folder.file("cert.pem"), cert);
  writeFileSync(folder.file("key.pem"), key);
}

const serve = (folder: TempFolder): Promise<ConfiguredServer> =>
  startConfigured({
    PLANTSTORE_DRAIN_TIMEOUT_MS: "0",
    TLS_CERT_FILE: folder.file("cert.pem"),
    TLS_KEY_FILE: folder.file("key.pem"),
  });

const messagesOf = (server: ConfiguredServer): readonly unknown[] => server.lines().map(({ msg }) => msg);

/** Opens a TLS connection that trusts only `ca`. */
async function connectTls({ port }: ConfiguredServer, ca: string, protocols: string[] = ["http/1.1"]) {
  const socket = connect({ host: "127.0.0.1", port, ca, servername: "localhost", ALPNProtocols: protocols });
  await within(once(socket, "secureConnect"), "the handshake");
  return socket;
}

test.each(["h2", "http/1.1"])("a TLS server negotiates %s by ALPN", async (protocol) => {
  using folder = createTempFolder();
  const certificate = createCertificate("plants");
  put(folder, certificate);
  await using server = await serve(folder);
  using socket = disposable(await connectTls(server, certificate.cert, [protocol]));
  expect(socket.alpnProtocol).toBe(protocol);
});

test("a TLS server does not respond to plain HTTP", async () => {
  using folder = createTempFolder();
  put(folder, createCertificate("plants"));
  await using server = await serve(folder);
  const request = { httpMethod: "GET", path: "/livez", header: [] };
  await expect(exchangeHttp1({ address: "127.0.0.1", port: server.port }, request)).rejects.toThrow();
});

test("new connections get a renewed certificate, and open connections continue", async () => {
  using folder = createTempFolder();
  const [first, renewed] = [createCertificate("first"), createCertificate("renewed")];
  put(folder, first);
  await using server = await serve(folder);
  using open = disposable(await connectTls(server, first.cert));
  put(folder, renewed);
  await server.reload();
  const reloaded = server.lines().find(({ msg }) => msg === "certificate reloaded");
  expect(reloaded).toMatchObject({ certFile: folder.file("cert.pem") });
  using later = disposable(await connectTls(server, renewed.cert));
  expect(later.authorized).toBe(true);
  open.write("GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n");
  const [response] = await within(once(open, "data"), "a response");
  expect(String(response)).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
});

const dayMs = 86_400_000;
const past = new Date("2021-01-01T00:00:00Z");

test.each<{ name: string; spoil: (folder: TempFolder) => void; problem: RegExp }>(
  // oxfmt-ignore
  [
    { name: "another certificate's key",
      spoil: (folder) => writeFileSync(folder.file("key.pem"), createCertificate("other").key),
      problem: /^the private key does not belong to the certificate$/ },
    { name: "a file of more than 1 MiB",
      spoil: (folder) => appendFileSync(folder.file("cert.pem"), "\n".repeat(1_048_576)), problem: /1048576 bytes/ },
    { name: "an expired certificate", spoil: (folder) => put(folder, createCertificate("renewed", past)),
      problem: /^the certificate expired at 2021-01-01T00:00:00\.000Z$/ },
  ],
)("a reload that finds $name keeps the old certificate", async ({ spoil, problem }) => {
  using folder = createTempFolder();
  const certificate = createCertificate("plants");
  put(folder, certificate);
  await using server = await serve(folder);
  spoil(folder);
  await server.reload();
  const refused = server.lines().find(({ msg }) => msg === "certificate not reloaded, keeping the previous one");
  expect(refused?.["problems"]).toEqual([expect.stringMatching(problem)]);
  using socket = disposable(await connectTls(server, certificate.cert));
  expect(socket.authorized).toBe(true);
});

test("an expired certificate is replaced even by another expired certificate", async () => {
  using folder = createTempFolder();
  put(folder, createCertificate("plants", past));
  await using server = await serve(folder);
  for (const renewed of [createCertificate("renewed", new Date("2022-01-01T00:00:00Z")), createCertificate("good")]) {
    put(folder, renewed);
    await server.reload();
  }
  expect(messagesOf(server).filter((message) => message === "certificate reloaded")).toHaveLength(2);
});

test.each([
  ["a server does not warn about a certificate with more than 14 days left", 14 + 1 / 24, undefined, undefined],
  ["a server warns at the start and daily in a certificate's last 14 days", 14, "certificate expires soon", undefined],
  ["a server warns at the start and daily about an expired certificate", -1, "certificate has expired", undefined],
  ["a server warns at the start and daily about a future certificate", 60, "certificate is not valid yet", 30],
])("%s", async (_name, days, want, fromDays = -60) => {
  using folder = createTempFolder();
  const startMs = Math.trunc(Date.now() / 1_000) * 1_000;
  const [notBefore, notAfter] = [new Date(startMs + fromDays * dayMs), new Date(startMs + days * dayMs)];
  put(folder, createCertificate("plants", notAfter, notBefore));
  using timers = vi.spyOn(globalThis, "setInterval");
  await using server = await serve(folder);
  await server.reload();
  const [daily] = timers.mock.calls.find(([, everyMs]) => everyMs === dayMs) ?? [];
  expect(daily).toBeDefined();
  daily?.();
  const warnings = (): readonly object[] =>
    server.lines().filter(({ msg }) => /^certificate (?:expires|has expired|is not valid)/.test(String(msg)));
  const warning = {
    errorCode: "ERR_CERTIFICATE_EXPIRES",
    msg: want,
    certFile: folder.file("cert.pem"),
    notBefore: notBefore.toISOString(),
    notAfter: notAfter.toISOString(),
  };
  const wanted = want === undefined ? [] : [warning, warning];
  expect(warnings()).toMatchObject(wanted);
  // A valid certificate ends the warnings, also after a second reload.
  put(folder, createCertificate("renewed"));
  await server.reload();
  await server.reload();
  daily?.();
  expect(warnings()).toMatchObject(wanted);
});

test("a server does not warn about an expired intermediate certificate", async () => {
  using folder = createTempFolder();
  const { cert, key } = createCertificate("plants");
  put(folder, { cert: cert + createCertificate("cross-signed", new Date("2021-01-01T00:00:00Z")).cert, key });
  await using server = await serve(folder);
  expect(messagesOf(server)).not.toContain("certificate has expired");
});

test("a server does not start if the key belongs to another certificate", async () => {
  using folder = createTempFolder();
  put(folder, { cert: createCertificate("one").cert, key: createCertificate("other").key });
  await expect(serve(folder)).rejects.toThrow("cannot use TLS_CERT_FILE and TLS_KEY_FILE: ");
});

function disposable(socket: TLSSocket): TLSSocket & Disposable {
  return Object.assign(socket, { [Symbol.dispose]: () => void socket.destroy() });
}
