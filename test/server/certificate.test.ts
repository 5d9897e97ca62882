import { once } from "node:events";
import { appendFileSync, writeFileSync } from "node:fs";
import { connect, type TLSSocket } from "node:tls";
import { expect, test, vi } from "vitest";
import { type Certificate, createCertificate } from "../../packages/testing/src/carriers/certificate.ts";
import { within } from "../../packages/testing/src/deadline.ts";
import { exchangeHttp1 } from "../../packages/testing/src/carriers/http1-connection.ts";
import { createTempFolder, type TempFolder } from "../../packages/testing/src/process/temp-folder.ts";
import { type ConfiguredServer, startConfigured } from "../support/server/start-configured.ts";

function put(folder: TempFolder, { cert, key }: Certificate): void {
  writeFileSync(folder.file("cert.pem"), cert);
  writeFileSync(folder.file("key.pem"), key);
}

/** Starts a server on the certificate of a folder. */
function serve(folder: TempFolder): Promise<ConfiguredServer> {
  return startConfigured({
    PLANTSTORE_DRAIN_TIMEOUT_MS: "0",
    TLS_CERT_FILE: folder.file("cert.pem"),
    TLS_KEY_FILE: folder.file("key.pem"),
  });
}

function messagesOf(server: ConfiguredServer): readonly unknown[] {
  return server.lines().map(({ msg }) => msg);
}

/** Shakes hands and returns the connection: `ca` alone is trusted. */
async function shakeHands(
  { port }: ConfiguredServer,
  ca: string,
  protocols: string[] = ["http/1.1"],
): Promise<TLSSocket> {
  const socket = connect({ host: "127.0.0.1", port, ca, servername: "localhost", ALPNProtocols: protocols });
  await within(once(socket, "secureConnect"), "the handshake");
  return socket;
}

test.each(["h2", "http/1.1"])("%s is agreed on by ALPN", async (protocol) => {
  using folder = createTempFolder();
  const certificate = createCertificate("plants");
  put(folder, certificate);
  await using server = await serve(folder);
  using socket = disposable(await shakeHands(server, certificate.cert, [protocol]));
  expect(socket.alpnProtocol).toBe(protocol);
});

test("with a certificate, what is sent in clear is not answered", async () => {
  using folder = createTempFolder();
  put(folder, createCertificate("plants"));
  await using server = await serve(folder);
  const request = { httpMethod: "GET", path: "/livez", header: [] };
  await expect(exchangeHttp1({ address: "127.0.0.1", port: server.port }, request)).rejects.toThrow();
});

test("a renewed certificate is shown to new connections, and those that are open live on", async () => {
  using folder = createTempFolder();
  const [first, renewed] = [createCertificate("first"), createCertificate("renewed")];
  put(folder, first);
  await using server = await serve(folder);
  using open = disposable(await shakeHands(server, first.cert));
  put(folder, renewed);
  await server.reload();
  const reloaded = server.lines().find(({ msg }) => msg === "certificate reloaded");
  expect(reloaded).toMatchObject({ certFile: folder.file("cert.pem") });
  using later = disposable(await shakeHands(server, renewed.cert));
  expect(later.authorized).toBe(true);
  open.write("GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n");
  const [answer] = await within(once(open, "data"), "an answer");
  expect(String(answer)).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
});

test.each<{ name: string; spoil: (folder: TempFolder) => void }>([
  {
    name: "a key that is not the certificate's",
    spoil: (folder) => writeFileSync(folder.file("key.pem"), createCertificate("other").key),
  },
  { name: "a certificate that is cut", spoil: (folder) => writeFileSync(folder.file("cert.pem"), "-----BEGIN CERT") },
  {
    name: "a file of more than 1 MiB",
    spoil: (folder) => appendFileSync(folder.file("cert.pem"), "\n".repeat(1_048_576)),
  },
  { name: "an empty key", spoil: (folder) => writeFileSync(folder.file("key.pem"), "") },
])("$name leaves the old certificate in place", async ({ spoil }) => {
  using folder = createTempFolder();
  const certificate = createCertificate("plants");
  put(folder, certificate);
  await using server = await serve(folder);
  spoil(folder);
  await server.reload();
  expect(messagesOf(server)).toContain("certificate not reloaded, keeping the previous one");
  using socket = disposable(await shakeHands(server, certificate.cert));
  expect(socket.authorized).toBe(true);
});

const dayMs = 86_400_000;
const past = new Date("2021-01-01T00:00:00Z");

test.each([
  { name: "has expired", dates: [past], problem: "the certificate expired at 2021-01-01T00:00:00.000Z" },
  {
    name: "is not valid yet",
    dates: [undefined, new Date("2098-01-01T00:00:00Z")],
    problem: "the certificate is not valid before 2098-01-01T00:00:00.000Z",
  },
])("a certificate that $name does not replace one that is valid", async ({ dates, problem }) => {
  using folder = createTempFolder();
  const certificate = createCertificate("plants");
  put(folder, certificate);
  await using server = await serve(folder);
  put(folder, createCertificate("renewed", ...dates));
  await server.reload();
  expect(server.lines()).toContainEqual(
    expect.objectContaining({ msg: "certificate not reloaded, keeping the previous one", problems: [problem] }),
  );
  using socket = disposable(await shakeHands(server, certificate.cert));
  expect(socket.authorized).toBe(true);
});

test("a certificate that has expired is replaced by a later one, valid or not", async () => {
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
  { name: "that expires an hour later than in 14 days is not warned of", days: 14 + 1 / 24, want: undefined },
  { name: "that expires in 14 days is warned of", days: 14, want: "the certificate expires soon" },
  { name: "that has expired is warned of", days: -1, want: "the certificate has expired" },
])("a certificate $name, at the start and each day", async ({ days, want }) => {
  using folder = createTempFolder();
  const notAfter = new Date(Math.trunc(Date.now() / 1_000) * 1_000 + days * dayMs);
  put(folder, createCertificate("plants", notAfter));
  using timers = vi.spyOn(globalThis, "setInterval");
  await using server = await serve(folder);
  await server.reload();
  const [daily] = timers.mock.calls.find(([, everyMs]) => everyMs === dayMs) ?? [];
  expect(daily).toBeDefined();
  daily?.();
  const warnings = server.lines().filter(({ msg }) => String(msg).startsWith("the certificate"));
  const warning = {
    errorCode: "ERR_CERTIFICATE_EXPIRES",
    msg: want,
    certFile: folder.file("cert.pem"),
    notAfter: notAfter.toISOString(),
  };
  expect(warnings).toMatchObject(want === undefined ? [] : [warning, warning]);
});

test("a certificate of the chain that has expired is not taken for the server's", async () => {
  using folder = createTempFolder();
  const { cert, key } = createCertificate("plants");
  put(folder, { cert: cert + createCertificate("cross-signed", new Date("2021-01-01T00:00:00Z")).cert, key });
  await using server = await serve(folder);
  expect(messagesOf(server)).not.toContain("the certificate has expired");
});

test("a key that is not the certificate's is a wrong configuration at the start", async () => {
  using folder = createTempFolder();
  put(folder, { cert: createCertificate("one").cert, key: createCertificate("other").key });
  await expect(serve(folder)).rejects.toThrow("TLS_CERT_FILE and TLS_KEY_FILE do not make a TLS server");
});

function disposable(socket: TLSSocket): TLSSocket & Disposable {
  return Object.assign(socket, { [Symbol.dispose]: () => void socket.destroy() });
}
