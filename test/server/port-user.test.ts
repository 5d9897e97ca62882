import { createServer, type RequestListener } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { createServer as createTcpServer, type Server } from "node:net";
import { afterAll, expect, test } from "vitest";
import { describePortUser } from "../../src/server/port-user.ts";
import { createCertificate, startOnLoopback } from "@protoport/testing/http";
import { createTempFolder, freePort } from "@protoport/testing/process";
import { startConfigured } from "../support/server/start-configured.ts";

const certificate = createCertificate("another program");
const describePort = (port: number, host = "127.0.0.1") => describePortUser({ host, port });

const answerWith =
  (status: number, body = ""): RequestListener =>
  (_, response) =>
    void response.writeHead(status).end(body);

test.each<[name: string, server: Server]>([
  ["a web page", createServer(answerWith(200, "<h1>Hello</h1>"))],
  ["the status of another program", createServer(answerWith(200, '{"status":"UP"}'))],
  ["an endless body", createServer((_, response) => sendEndlessly(response))],
  ["404 over TLS", createTlsServer(certificate, answerWith(404))],
  ["500", createServer(answerWith(500))],
  ["another challenge", createServer((_, response) => response.writeHead(401, { "www-authenticate": "Basic" }).end())],
  ["another protocol", createTcpServer((socket) => socket.end("-ERR unknown command\r\n"))],
  ["nothing", createTcpServer()],
])("a program that sends %s on the port is reported", async (_name, server) => {
  await using other = await startOnLoopback(server);
  const { port } = other.address;
  const warning = `port ${port} is in use, and no plant store responds; stop the program that uses it, or choose another PORT`;
  const found = await Promise.all(["127.0.0.1", "0.0.0.0", "::", "localhost"].map((host) => describePort(port, host)));
  expect(found).toEqual(Array.from({ length: 4 }, () => warning));
  expect(await describePort(port, "unix:/run/plants.sock")).toBeUndefined();
});

function sendEndlessly(response: Parameters<RequestListener>[1]): void {
  response.on("drain", () => response.write(" ".repeat(65_536)));
  response.write(" ".repeat(65_536));
}

test("a free port and port 0 cause no warning", async () =>
  expect([await describePort(await freePort()), await describePort(0)]).toEqual([undefined, undefined]));

const folder = createTempFolder();
afterAll(() => folder[Symbol.dispose]());
const { cert, key } = certificate;
const tls = { TLS_CERT_FILE: folder.write("cert.pem", cert), TLS_KEY_FILE: folder.write("key.pem", key) };
const proxied = { PLANTSTORE_PROXY_PROTOCOL: "on", PLANTSTORE_TRUSTED_PROXIES: "127.0.0.0/8" };

test.each<[name: string, environment: Readonly<Record<string, string>>]>([
  ["without other settings", {}],
  ["with TLS", tls],
  ["with a path prefix", { PLANTSTORE_PUBLIC_URL: "https://plants.example/api" }],
  ["with a credential", { PLANTSTORE_TOKENS: "a-token-of-the-plant-store" }],
  ["that expects the PROXY protocol", proxied],
  ["that expects the PROXY protocol before TLS", { ...proxied, ...tls }],
  ["that expects the PROXY protocol from others", { ...proxied, PLANTSTORE_TRUSTED_PROXIES: "10.0.0.0/8" }],
  ["whose documents need a credential", { PLANTSTORE_DOCS: "closed" }],
])("a running plant store %s is not another program", async (_name, environment) => {
  await using server = await startConfigured(environment);
  expect(await describePort(server.port)).toBeUndefined();
});
