import { createServer, type Socket } from "node:net";
import { afterEach, beforeEach, expect, test } from "vitest";
import { defaultLimits, type Exchange, planBody, type RequestBody } from "../../src/http/exchange/index.ts";
import { BacklogBudget } from "../../src/engine/backlog.ts";
import { createHttp1Server } from "../../src/engine/http1-server.ts";
import { type Http1Connection, listenOnLoopback, openHttp1 } from "@protoport/testing/http";
import { within } from "@protoport/testing/process";

// A request's body, as the code that serves an HTTP/1.1 exchange sees it.

let exchanges: Exchange[];
let served: PromiseWithResolvers<Exchange>;
let accepted: PromiseWithResolvers<Socket>;
let client: Http1Connection;
let close: () => void;

beforeEach(async () => {
  exchanges = [];
  served = Promise.withResolvers();
  accepted = Promise.withResolvers();
  const http1 = createHttp1Server({
    limits: defaultLimits,
    budget: new BacklogBudget(2 ** 30),
    serve: (exchange) => {
      exchanges.push(exchange);
      served.resolve(exchange);
    },
    refuse: (exchange, { httpStatus }) => exchange.respond(httpStatus, []),
    stopProblem: () => undefined,
    countError: () => {},
    report: (error) => {
      throw error;
    },
  });
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    accepted.resolve(socket);
    http1.take(socket);
  });
  const { hostname, port } = new URL(await listenOnLoopback(server));
  client = await openHttp1({ address: hostname, port: Number(port) });
  close = () => {
    client[Symbol.dispose]();
    void accepted.promise.then((socket) => socket.destroy());
    http1.close();
    server.close();
  };
});
afterEach(() => close());

function bodyOf({ body }: Exchange): RequestBody {
  if (body === undefined) throw new TypeError("the request has no body");
  return body;
}

const piecesOf = (exchange: Exchange): AsyncIterator<Uint8Array> => bodyOf(exchange).pieces()[Symbol.asyncIterator]();
const nextPiece = (exchange: Exchange): Promise<IteratorResult<Uint8Array>> => piecesOf(exchange).next();
const head = "POST / HTTP/1.1\r\nhost: x\r\n";
const inLength = (bytes: number): string => `${head}content-length: ${String(bytes)}\r\n\r\n`;
const clientGone = { httpStatus: 499 };
const chunk = Buffer.concat([Buffer.from("10000\r\n"), Buffer.alloc(64 * 1024), Buffer.from("\r\n")]);

test.each([
  { name: "Content-Length", start: inLength(2 ** 30), piece: Buffer.alloc(64 * 1024) },
  { name: "chunks", start: `${head}transfer-encoding: chunked\r\n\r\n`, piece: chunk },
])("an unread body with $name is buffered up to 192 KiB", async ({ start, piece }) => {
  client.write(start);
  const exchange = await within(served.promise, "the request");
  const connection = await accepted.promise;
  const paused = new Promise((resolve) => connection.once("pause", resolve));
  // More than the kernel buffers.
  for (let i = 0; i < 256; i++) client.write(piece);
  await within(paused, "the server to read no more");
  await new Promise(setImmediate);
  expect(connection.isPaused()).toBe(true);
  expect(connection.bytesRead).toBeLessThan(256 * 1024);
  const body = piecesOf(exchange);
  for (let taken = 0; taken < 8 * 1024 * 1024;) {
    const { value } = await within(body.next(), "a piece");
    taken += value?.byteLength ?? Number.NaN;
  }
});

test("a trailer section split between two socket chunks is read completely", async () => {
  client.write(`${head}transfer-encoding: chunked\r\n\r\n`);
  const exchange = await within(served.promise, "the request");
  const received = new Promise<Uint8Array | undefined>((resolve) => {
    bodyOf(exchange).read(planBody(100_000), { received: resolve });
  });
  const connection = await accepted.promise;
  // Large chunks are freed after reading.
  client.write(`7530\r\n${"x".repeat(30_000)}\r\n0\r\nx-order`);
  await expect.poll(() => connection.bytesRead).toBeGreaterThan(30_000);
  client.write(`: y\r\n\r\n${inLength(0)}`);
  expect((await within(received, "the body"))?.byteLength).toBe(30_000);
  exchange.respond(200, [], Buffer.of());
  expect((await client.readResponse()).httpStatus).toBe(200);
  await expect.poll(() => exchanges.length).toBe(2);
});

test("an unread request body after its response rejects pending and later reads if it is incomplete", async () => {
  client.write(`${inLength(10)}order`);
  const exchange = await within(served.promise, "the request");
  expect(String((await nextPiece(exchange)).value)).toBe("order");
  const waiting = expect(nextPiece(exchange)).rejects.toMatchObject(clientGone);
  exchange.respond(200, [], Buffer.of());
  await waiting;
  await expect(nextPiece(exchange)).rejects.toMatchObject(clientGone);
  // The rest is dropped, and the next request follows it.
  client.write(`store${inLength(0)}`);
  await expect.poll(() => exchanges.length).toBe(2);
  await expect(nextPiece(exchange)).rejects.toMatchObject(clientGone);
});

test("an unread request body after its response rejects later reads even if it is complete", async () => {
  client.write(`${inLength(5)}order`);
  const exchange = await within(served.promise, "the request");
  exchange.respond(200, [], Buffer.of());
  await expect(nextPiece(exchange)).rejects.toMatchObject(clientGone);
});

test("an unread request body after its response does not cause 100 Continue for the next request", async () => {
  client.write(`${inLength(5)}order${head}expect: 100-continue\r\ncontent-length: 1\r\n\r\n`);
  const first = await within(served.promise, "the request");
  first.respond(200, [], Buffer.of());
  await expect.poll(() => exchanges.length).toBe(2);
  // A completed exchange sends no 100 Continue for the next one.
  bodyOf(first).pieces();
  exchanges[1]?.respond(417, [], Buffer.of());
  expect(await client.readResponse()).toMatchObject({ httpStatus: 200, interim: [] });
  expect(await client.readResponse()).toMatchObject({ httpStatus: 417, interim: [] });
});

test.each<{ name: string; misuse: (exchange: Exchange) => unknown }>([
  { name: "a second response", misuse: (exchange) => exchange.respond(500, [], Buffer.from("again")) },
  { name: "the start of a response", misuse: (exchange) => exchange.begin(500, []) },
  { name: "a write", misuse: (exchange) => exchange.write(Buffer.from("more")) },
  { name: "the end of a response", misuse: (exchange) => exchange.end() },
  { name: "a reset", misuse: (exchange) => exchange.reset() },
])("a completed exchange $name does not affect the next exchange", async ({ misuse }) => {
  client.write(inLength(0) + inLength(0));
  const first = await within(served.promise, "the request");
  first.respond(200, [], Buffer.from("first"));
  await expect.poll(() => exchanges.length).toBe(2);
  void misuse(first);
  exchanges[1]?.respond(200, [], Buffer.from("second"));
  expect(String((await client.readResponse()).body)).toBe("first");
  expect(String((await client.readResponse()).body)).toBe("second");
});

test("a disconnected client's exchange rejects reads and settles writes", async () => {
  client.write(`${inLength(10)}order`);
  const exchange = await within(served.promise, "the request");
  await nextPiece(exchange);
  const waiting = expect(nextPiece(exchange)).rejects.toMatchObject(clientGone);
  exchange.begin(200, []);
  client.socket.pause();
  const written = Promise.all([exchange.write(Buffer.alloc(64 * 1024 * 1024)), exchange.write(Buffer.of(1))]);
  client.socket.resetAndDestroy();
  await within(waiting, "the end of the body");
  await within(written, "the end of what is written");
  await expect(nextPiece(exchange)).rejects.toMatchObject(clientGone);
  expect(exchange.write(Buffer.of(1))).toBeUndefined();
});

test("respond() throws for an invalid trailer, and may be called again", async () => {
  client.write(inLength(0));
  const exchange = await within(served.promise, "the request");
  expect(() => exchange.respond(200, [], Buffer.from("first"), ["x", "\u0001"])).toThrow(TypeError);
  exchange.respond(500, [], Buffer.from("second"));
  expect(await client.readResponse()).toMatchObject({ httpStatus: 500, body: Buffer.from("second") });
});
