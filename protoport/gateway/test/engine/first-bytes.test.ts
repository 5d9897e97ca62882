import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { detectProtocol, firstProtocolOf, putBack, type FirstProtocol } from "../../src/engine/first-bytes.ts";
import { createByteReader, listenOnLoopback } from "@protoport/testing/http";
import { within } from "@protoport/testing/process";

const preface = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");

test.each([
  { name: "the HTTP/2 preface", bytes: preface, want: "http2" },
  { name: "a request line", bytes: Buffer.from("GET / HTTP/1.1\r\n"), want: "http1" },
  { name: "one letter of a method", bytes: Buffer.from("G"), want: "http1" },
  { name: "a method that begins like the preface", bytes: Buffer.from("PRIVATE / HTTP/1.1\r\n"), want: "http1" },
  { name: "the preface of another version", bytes: Buffer.from("PRI * HTTP/2.1\r\n"), want: "http1" },
  { name: "a TLS handshake", bytes: Buffer.of(22, 3, 1), want: "tls" },
  { name: "a zero byte", bytes: Buffer.of(0), want: "http1" },
  { name: "no bytes", bytes: Buffer.alloc(0), want: undefined },
])("firstProtocolOf returns $want for $name at the start", ({ bytes, want }) => {
  expect(firstProtocolOf(bytes)).toBe(want);
});

test.each(Array.from({ length: 16 }, (_, length) => ({ length })))(
  "firstProtocolOf returns undefined for the first $length bytes of the preface",
  ({ length }) => expect(firstProtocolOf(preface.subarray(0, length))).toBeUndefined(),
);

/** The server's end of a connection, passed to the next owner. */
type Handed = { readonly spoken: FirstProtocol; readonly socket: Socket };

// The timeout for connections that are accepted from now on.
let timeoutMs = 10_000;
const accepted: ((socket: Socket) => void)[] = [];
const handed: ((handed: Handed) => void)[] = [];
const server = createServer({ allowHalfOpen: true }, (socket) => {
  detectProtocol(socket, timeoutMs, (spoken, bytes) => {
    putBack(socket, bytes);
    handed.shift()?.({ spoken, socket });
  });
  accepted.shift()?.(socket);
});
let port: number;

beforeAll(async () => {
  port = Number(new URL(await listenOnLoopback(server)).port);
});

afterAll(() => void server.close());

/** A connected client, and the server's end of its connection. */
async function open(): Promise<{ client: Socket; socket: Socket; spoken: Promise<Handed> }> {
  const socket = new Promise<Socket>((resolve) => accepted.push(resolve));
  const spoken = new Promise<Handed>((resolve) => handed.push(resolve));
  const client = connect({ port, host: "127.0.0.1", noDelay: true, allowHalfOpen: true });
  client.on("error", () => {});
  return { client, socket: await within(socket, "a connection"), spoken };
}

/** Sends bytes and waits until the server has examined them. */
async function send(client: Socket, socket: Socket, bytes: Uint8Array): Promise<void> {
  const expected = socket.bytesRead + bytes.byteLength;
  client.write(bytes);
  while (socket.bytesRead < expected) await within(once(socket, "readable"), "bytes");
}

test.each(Array.from({ length: preface.byteLength - 1 }, (_, at) => ({ at: at + 1 })))(
  "detectProtocol passes on all bytes of a preface (split after byte $at)",
  async ({ at }) => {
    const { client, socket, spoken } = await open();
    await send(client, socket, preface.subarray(0, at));
    client.write(preface.subarray(at));
    const { spoken: what } = await within(spoken, "the connection");
    expect(what).toBe("http2");
    const bytes = await createByteReader(socket).readExactly(preface.byteLength, "the preface");
    expect(bytes.equals(preface)).toBe(true);
    client.destroy();
  },
);

test("detectProtocol passes on all bytes of a request that arrives byte by byte", async () => {
  const { client, socket, spoken } = await open();
  const request = Buffer.from("PRIVATE / HTTP/1.1\r\n\r\n");
  for (let at = 0; at < 4; at += 1) await send(client, socket, request.subarray(at, at + 1));
  client.write(request.subarray(4));
  expect((await within(spoken, "the connection")).spoken).toBe("http1");
  expect((await createByteReader(socket).readExactly(request.byteLength, "the request")).equals(request)).toBe(true);
  client.destroy();
});

test("detectProtocol keeps a connection open if its bytes arrive while the process is paused", async () => {
  timeoutMs = 50;
  const { client, socket, spoken } = await open();
  timeoutMs = 10_000;
  if (client.connecting) await within(once(client, "connect"), "the client");
  client.write("GET / HTTP/1.1\r\n");
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 100);
  await within(Promise.race([spoken, once(socket, "close")]), "the connection");
  expect(socket.destroyed).toBe(false);
  client.destroy();
});

test("detectProtocol detects TLS from the first byte", async () => {
  const { client, spoken } = await open();
  client.write(Buffer.of(22));
  expect((await within(spoken, "the connection")).spoken).toBe("tls");
  client.destroy();
});

test.each([
  { name: "no bytes", says: "" },
  { name: "an incomplete preface", says: "PRI * HTTP/2.0" },
])("a connection with an undetected protocol that sends $name is closed after the timeout", async ({ says }) => {
  timeoutMs = 200;
  const { client, socket } = await open();
  timeoutMs = 10_000;
  client.write(says);
  await within(once(socket, "close"), "the connection to close");
  client.destroy();
});

test.each([
  { name: "before the first byte", says: "" },
  { name: "during the preface", says: "PRI" },
])("a connection with an undetected protocol half-closed $name is closed immediately", async ({ says }) => {
  const { client, socket } = await open();
  client.end(says);
  await within(once(socket, "close"), "the connection to close");
  client.destroy();
});
