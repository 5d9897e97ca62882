import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { once } from "node:events";
import { connect, Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Gateway, ListenOptions } from "../../../../src/index.ts";
import { createCertificate, createTestGateway, within } from "@protoport/testing";

// Several owners pass on a connection: accept, the PROXY header, the TLS handshake, the protocol choice and the HTTP
// server. Each test ends a connection while one of them owns it. Vitest keeps its process alive after an error event
// without a listener, so the tests record such errors.

const certificate = createCertificate("localhost");
const proxyHeader = "PROXY TCP4 192.0.2.7 192.0.2.9 47 443\r\n";
const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
// A TLS record that ends within its head (RFC 8446 §5.1).
const halfRecord = Buffer.of(22, 3, 1, 1);

interface Moment {
  readonly name: string;
  readonly options?: ListenOptions;
  /** The bytes that the server has read when the connection ends. */
  readonly sent: string | Buffer;
  readonly handshake?: boolean;
}

// oxfmt-ignore
const moments: readonly Moment[] = [
  { name: "before the first byte", sent: "" },
  { name: "before the PROXY header", options: { proxyProtocol: true }, sent: "" },
  { name: "within the PROXY header", options: { proxyProtocol: true }, sent: proxyHeader.slice(0, 20) },
  { name: "after the PROXY header", options: { proxyProtocol: true }, sent: proxyHeader },
  { name: "within the HTTP/2 preface", sent: preface.slice(0, 8) },
  { name: "after the HTTP/2 preface", sent: preface },
  { name: "within an HTTP/1.1 request", sent: "GET / HTTP/1.1\r\nhost:" },
  { name: "within the TLS handshake", options: { tls: certificate }, sent: halfRecord },
  { name: "within the TLS handshake after a PROXY header", options: { tls: certificate, proxyProtocol: true },
    sent: Buffer.concat([Buffer.from(proxyHeader), halfRecord]) },
  { name: "after the TLS handshake", options: { tls: certificate }, sent: "", handshake: true },
];

interface End {
  readonly name: string;
  /** The gateway's timeouts, which are long unless a timeout should close the connection. */
  readonly timeoutMs: number;
  /** @param encrypted - the client's side inside TLS, after a handshake */
  readonly apply: (client: Socket, encrypted: Socket | undefined) => void;
}

const shortMs = 300;
const longMs = 120_000;
const ends: readonly End[] = [
  { name: "a reset", timeoutMs: longMs, apply: (client) => void client.resetAndDestroy() },
  { name: "a half-close", timeoutMs: longMs, apply: endLocalSide },
  { name: "a timeout", timeoutMs: shortMs, apply: () => undefined },
];

function endLocalSide(client: Socket, encrypted: Socket = client): void {
  encrypted.end();
}

let gateway: Gateway | undefined;
let uncaught: unknown[];
let accepted: Socket[];
const recordError = (error: unknown): void => void uncaught.push(error);
const recordSocket = (sent: unknown): void => {
  if (sent instanceof Object && "socket" in sent && sent.socket instanceof Socket) accepted.push(sent.socket);
};

beforeEach(() => {
  uncaught = [];
  accepted = [];
  process.on("uncaughtException", recordError);
  subscribe("net.server.socket", recordSocket);
});

afterEach(async () => {
  await gateway?.close();
  unsubscribe("net.server.socket", recordSocket);
  process.off("uncaughtException", recordError);
});

describe.each(moments)("a connection ($name)", ({ options = {}, sent, handshake }) => {
  test.each(ends)("is closed by $name without affecting others", async ({ timeoutMs, apply }) => {
    const { port, opened } = await listen(options, timeoutMs);
    const { client, server } = await open(port);
    await send(client, server, sent);
    const encrypted = handshake === true ? encrypt(client).resume() : undefined;
    if (encrypted !== undefined) await within(once(encrypted, "secureConnect"), "the handshake");
    apply(client, encrypted);
    await within(closed(server), "the server to close the connection", closeLimitMs);
    expect(await getPage(port, options)).toBe("HTTP/1.1 200 OK");
    await within(Promise.all(accepted.map(closed)), "the server to close all connections", closeLimitMs);
    await expect.poll(() => opened.load.connections).toEqual({ http1: 0, http2: 0 });
    expect(uncaught).toEqual([]);
  });
});

describe.each([
  { name: "before the first byte", sent: "" },
  { name: "within the HTTP/2 preface", sent: preface.slice(0, 8) },
  { name: "within an HTTP/1.1 request", sent: "GET / HTTP/1.1\r\nhost:" },
])("a connection during a drain ($name)", ({ sent }) => {
  test.each(ends)("is closed by $name, and the drain completes", async ({ timeoutMs, apply }) => {
    const { port, opened } = await listen({}, timeoutMs);
    const { client, server } = await open(port);
    await send(client, server, sent);
    const drained = opened.drain(longMs);
    apply(client, undefined);
    await within(drained, "the drain", closeLimitMs);
    await within(closed(server), "the server to close the connection", closeLimitMs);
    await expect.poll(() => opened.load.connections).toEqual({ http1: 0, http2: 0 });
    expect(uncaught).toEqual([]);
  });
});

const slowCall = "POST /slow HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{}";

describe.each([
  { name: "malformed bytes", sent: "HELLO\r\n\r\n" },
  { name: "CONNECT", sent: "CONNECT x:80 HTTP/1.1\r\nhost: x:80\r\n\r\n" },
])("a connection with $name after a call", ({ sent }) => {
  test.each<{ name: string; apply: (client: Socket, opened: Gateway) => unknown }>([
    { name: "the client resets it", apply: (client) => client.resetAndDestroy() },
    { name: "a drain reaches its deadline", apply: (_client, opened) => opened.drain(1) },
  ])("is closed when $name during the call", async ({ apply }) => {
    const { port, opened } = await listen({}, longMs);
    const { client, server } = await open(port);
    await send(client, server, slowCall + sent);
    expect(opened.load.requests).toEqual({ http1: 1, http2: 0 });
    await apply(client, opened);
    await within(closed(server), "the server to close the connection", closeLimitMs);
    await expect.poll(() => opened.load.connections).toEqual({ http1: 0, http2: 0 });
    expect([uncaught, opened.load.badRequests]).toEqual([[], new Map()]);
  });
});

// In milliseconds, far above the timeouts that close a connection here, and far below those that must not.
const closeLimitMs = 6000;

async function listen(options: ListenOptions, timeoutMs: number): Promise<{ port: number; opened: Gateway }> {
  const opened = createTestGateway({
    routes: () => {},
    endpoints: [
      { path: "/page", open: true, handle: () => ({ httpStatus: 200, body: "page" }) },
      { path: "/slow", httpMethods: ["POST"], open: true, handle: () => new Promise(() => undefined) },
    ],
    trustedProxies: { addresses: ["127.0.0.1"] },
    limits: { headerTimeoutMs: timeoutMs, requestTimeoutMs: timeoutMs, idleTimeoutMs: timeoutMs },
  });
  gateway = opened;
  const { port } = await opened.listen({ host: "127.0.0.1", port: 0, ...options });
  return { port, opened };
}

async function open(port: number): Promise<{ client: Socket; server: Socket }> {
  const client = connect({ host: "127.0.0.1", port, noDelay: true, allowHalfOpen: true }).on("error", () => undefined);
  await within(once(client, "connect"), "the connection");
  for (;;) {
    const server = accepted.find(({ remotePort }) => remotePort === client.localPort);
    if (server !== undefined) return { client, server };
    await new Promise(setImmediate);
  }
}

async function send(client: Socket, server: Socket, bytes: string | Buffer): Promise<void> {
  client.write(bytes);
  const read = async (): Promise<void> => {
    while (server.bytesRead < bytes.length && !server.closed) await new Promise(setImmediate);
  };
  await within(read(), "the server to read the bytes");
}

function encrypt(socket: Socket): Socket {
  const encrypted = connectTls({ socket, ca: certificate.cert, servername: "localhost", ALPNProtocols: ["http/1.1"] });
  return encrypted.on("error", () => undefined);
}

async function closed(socket: Socket): Promise<void> {
  if (!socket.closed) await new Promise<void>((resolve) => void socket.once("close", () => resolve()));
}

async function getPage(port: number, { tls, proxyProtocol }: ListenOptions): Promise<string> {
  const { client } = await open(port);
  if (proxyProtocol === true) client.write(proxyHeader);
  const socket = tls === undefined ? client : encrypt(client);
  socket.write("GET /page HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
  const [bytes] = await within(once(socket, "data"), "the page");
  socket.end();
  client.end();
  return String(bytes).split("\r\n", 1)[0] ?? "";
}
