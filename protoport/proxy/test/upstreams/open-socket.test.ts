import { once } from "node:events";
import { createServer as createTcpServer } from "node:net";
import { createServer, type TlsOptions } from "node:tls";
import { expect, test } from "vitest";
import { createUpstream, type UpstreamTls } from "../../src/upstreams/index.ts";
import { explainTlsError, openSocket } from "../../src/upstreams/open-socket.ts";
import { createCertificate, listenOnLoopback } from "@protoport/testing/http";
import { openGreenhouseClient, wateringOf } from "../../../testing/src/gateway/greenhouse-client.ts";
import { minFreedBytes } from "../../../gateway/src/http/exchange/index.ts";
import { readUpstreamAddress } from "../../src/upstreams/upstream-address.ts";

const server = createCertificate("server");
const client = createCertificate("client");

test.each<[name: string, listen: TlsOptions | undefined, tls: UpstreamTls, want: string]>(
  // oxfmt-ignore
  [
    ["an unknown CA", server, {}, "; set tls.ca (--upstream-tls-ca) to the certificate of its authority"],
    ["a wrong host name", server, { ca: server.cert, servername: "other.example" },
      "; set tls.servername (--upstream-tls-servername) to a name of the certificate"],
    ["a missing client certificate", { ...server, requestCert: true, ca: client.cert }, { ca: server.cert },
      "the server requires a client certificate: set tls.cert and tls.key (--upstream-tls-cert, --upstream-tls-key)"],
    ["a server that closes the connection",
      { ...server, requestCert: true, ca: client.cert, rejectUnauthorized: false }, { ca: server.cert },
      "the server may require a client certificate: set tls.cert and tls.key (--upstream-tls-cert, --upstream-tls-key)"],
    ["a server without TLS", undefined, {}, "the server does not use TLS: use an http: address, or dns: without tls"],
  ],
)("the error for %s names the TLS option to change", async (_name, listen, tls, want) => {
  const listener =
    listen === undefined
      ? createTcpServer((socket) => void socket.resume().end("HTTP/1.1 400 Bad Request\r\n\r\n"))
      : createServer({ ...listen, ALPNProtocols: ["h2"] }, (socket) => void socket.resume().end());
  listener.on("error", () => undefined).on("tlsClientError", () => undefined);
  const url = await listenOnLoopback(listener);
  await using greenhouse = openGreenhouseClient({ addresses: url.replace(/^http:/, "https:"), tls });
  expect(await wateringOf(greenhouse)).toContain(want);
  await once(listener.close(), "close");
});

test.each([
  ["ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED", /^the server requires a client certificate: set tls\.cert/],
  ["ERR_SSL_TLSV1_ALERT_UNKNOWN_CA", /^the server rejected the client certificate of tls\.cert/],
  ["ERR_SSL_SSLV3_ALERT_BAD_CERTIFICATE", /^the server rejected the client certificate of tls\.cert/],
  ["ECONNREFUSED", /^connect failed$/],
])("the error %s is explained if it is a TLS error", (code, want) => {
  expect(explainTlsError(Object.assign(new Error("connect failed"), { code })).message).toMatch(want);
});

test.each<{ name: string; tls: UpstreamTls }>([
  { name: "a key of another certificate", tls: { cert: client.cert, key: server.key } },
  { name: "a certificate that is not PEM", tls: { cert: "x", key: "y" } },
])("createUpstream rejects $name, and the error names the options", ({ tls }) => {
  const problem = "cannot use the certificates and the key of tls: ";
  expect(() => createUpstream({ addresses: "https://localhost:1", tls })).toThrow(problem);
});

test("a small chunk from the socket has a separate ArrayBuffer", async () => {
  const listener = createTcpServer((socket) => void socket.end(Buffer.alloc(100, "a")));
  const address = readUpstreamAddress(await listenOnLoopback(listener));
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  openSocket(address, undefined, 60_000, (opened) => {
    if (opened instanceof Error) reject(opened);
    else opened.once("data", resolve);
  });
  const chunk = await promise;
  expect(chunk.byteLength).toBeLessThan(minFreedBytes);
  expect(chunk.buffer.byteLength).toBe(chunk.byteLength);
  await once(listener.close(), "close");
});
