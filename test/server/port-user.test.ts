import { createServer, type RequestListener } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { createServer as createTcpServer, type Server } from "node:net";
import { afterAll, expect, test } from "vitest";
import { describePortUser } from "../../src/server/port-user.ts";
import { createCertificate } from "../../protoport/testing/src/http/certificate.ts";
import { startOnLoopback } from "../../protoport/testing/src/http/listen-on-loopback.ts";
import { createTempFolder } from "../../protoport/testing/src/process/temp-folder.ts";
import { freePort } from "../../protoport/testing/src/process/free-port.ts";
import { startConfigured } from "../support/server/start-configured.ts";

// The program that uses the port of a configuration.

const certificate = createCertificate("another program");

/** Returns the warning for a port of 127.0.0.1. */
function describePort(port: number, other: Partial<Parameters<typeof describePortUser>[0]> = {}) {
  return describePortUser({ host: "127.0.0.1", port, proxyProtocol: "off", ...other });
}

const answerWith =
  (status: number, body = ""): RequestListener =>
  (_, response) =>
    void response.writeHead(status).end(body);

test.each<{ name: string; server: () => Server; isWarned: boolean }>([
  { name: "a web page", server: () => createServer(answerWith(200, "<h1>Hello</h1>")), isWarned: true },
  { name: "404", server: () => createServer(answerWith(404)), isWarned: true },
  { name: "a redirect", server: () => createServer(answerWith(308)), isWarned: true },
  { name: "an endless body", server: () => createServer((_, response) => sendEndlessly(response)), isWarned: true },
  { name: "404 over TLS", server: () => createTlsServer(certificate, answerWith(404)), isWarned: true },
  { name: "400", server: () => createServer(answerWith(400)), isWarned: false },
  { name: "503", server: () => createServer(answerWith(503)), isWarned: false },
  { name: "no response", server: () => createServer(() => undefined), isWarned: false },
  { name: "another protocol", server: () => createTcpServer((socket) => socket.end("SSH-2.0-x\r\n")), isWarned: false },
])("a program that sends $name on the port is named if it is another one", async ({ server, isWarned }) => {
  await using other = await startOnLoopback(server());
  const { port } = other.address;
  const warning = `another program uses port ${port}; stop it, or choose another PORT`;
  expect(await describePort(port)).toBe(isWarned ? warning : undefined);
  expect(await describePort(port, { proxyProtocol: "on" })).toBeUndefined();
  expect(await describePort(port, { host: "unix:/run/plants.sock" })).toBeUndefined();
});

/** Sends spaces until the client disconnects. */
function sendEndlessly(response: Parameters<RequestListener>[1]): void {
  response.on("drain", () => response.write(" ".repeat(65_536)));
  response.write(" ".repeat(65_536));
}

test("a free port and port 0 cause no warning", async () => {
  expect([await describePort(await freePort()), await describePort(0)]).toEqual([undefined, undefined]);
});

const folder = createTempFolder();
afterAll(() => folder[Symbol.dispose]());
const tls = {
  TLS_CERT_FILE: folder.write("cert.pem", certificate.cert),
  TLS_KEY_FILE: folder.write("key.pem", certificate.key),
};

test.each<[name: string, environment: Readonly<Record<string, string>>]>([
  ["without other settings", {}],
  ["with TLS", tls],
  ["with a path prefix", { PLANTSTORE_PUBLIC_URL: "https://plants.example/api" }],
  ["that expects the PROXY protocol", { PLANTSTORE_PROXY_PROTOCOL: "on", PLANTSTORE_TRUSTED_PROXIES: "127.0.0.0/8" }],
  ["whose documents need a credential", { PLANTSTORE_DOCS: "closed" }],
])("a running plant store %s is not another program", async (_name, environment) => {
  await using server = await startConfigured(environment);
  expect(await describePort(server.port)).toBeUndefined();
});
