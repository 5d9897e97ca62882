import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { buffer } from "node:stream/consumers";
import { keepAliveLines } from "../../../src/engine/http1/response-head.ts";
import { describe, expect, test } from "vitest";
import { defaultLimits, markSingleUse, planBody, RequestBody } from "../../../src/http/exchange/index.ts";
import { BacklogBudget } from "../../../src/engine/backlog.ts";
import { Http1Connection, type RequestReceiver } from "../../../src/engine/http1/http1-connection.ts";
import type { Http1RequestHead } from "../../../src/engine/http1/request-head.ts";
import { listenOnLoopback } from "@protoport/testing/http";
import { collectGarbage, waitSomeTurns, within } from "@protoport/testing/process";

const get = "GET / HTTP/1.1\r\nhost: x\r\n\r\n";
const ignore = (): void => {};
const receiver: RequestReceiver = { body: undefined, onRequestError: ignore, onDisconnect: ignore, onWritable: ignore };

/** Both ends of a connection whose server responds to every request with a page. Dispose it with `using`. */
interface Ends extends Disposable {
  readonly client: Socket;
  readonly socket: Socket;
  readonly connection: Http1Connection;
  readonly budget: BacklogBudget;
}

async function openEnds(
  page: Uint8Array,
  timeoutCheckIntervalMs: number,
  onRequest = (http1: Http1Connection, _head: Http1RequestHead): void => http1.respond(200, [], page),
  highWaterMark?: number,
): Promise<Ends> {
  const accepted = Promise.withResolvers<Pick<Ends, "socket" | "connection">>();
  const budget = new BacklogBudget(2 * page.byteLength);
  const server = createServer({ allowHalfOpen: true, ...(highWaterMark && { highWaterMark }) }, (socket) => {
    const connection = new Http1Connection(socket, {
      limits: defaultLimits,
      keepAliveLines: keepAliveLines(defaultLimits.idleTimeoutMs),
      timeoutCheckIntervalMs,
      budget,
      onRequest: (http1, head) => {
        http1.receiver = receiver;
        onRequest(http1, head);
      },
      onClose: () => {},
      onFault: () => {},
    });
    accepted.resolve({ socket, connection });
  });
  const { hostname, port } = new URL(await listenOnLoopback(server));
  const client = connect(Number(port), hostname).pause();
  const ends = await within(accepted.promise, "the connection");
  const close = (): void => {
    client.destroy();
    ends.socket.destroy();
    server.close();
  };
  return { client, ...ends, budget, [Symbol.dispose]: close };
}

type ReadBody = (body: RequestBody, length: number) => Promise<Uint8Array>;

const readLater: ReadBody = async (body, length) => {
  await expect.poll(() => body.ended).toBe(true);
  return await readCompletely(body, length);
};

/** Sends a string and waits until the server has received it. */
async function sendAndWait({ client, socket }: Ends, text: string): Promise<void> {
  const received = once(socket, "data");
  client.write(text);
  await within(received, "the sent bytes");
}

/** Lets the client read until the socket's buffer is empty once. */
async function drainOnce({ client, socket }: Ends): Promise<void> {
  const drained = once(socket, "drain");
  client.resume();
  await within(drained, "a part to be read");
  client.pause();
}

/** Opens both ends, sends a request and waits for it. Only the test responds. */
async function openRequested(timeoutCheckIntervalMs = 1000, request = get): Promise<Ends> {
  const requested = Promise.withResolvers<Http1Connection>();
  const ends = await openEnds(Buffer.alloc(64 * 1024 * 1024), timeoutCheckIntervalMs, requested.resolve);
  ends.client.write(request);
  await within(requested.promise, "the request");
  return ends;
}

describe.each<[name: string, read: ReadBody]>(
  Object.entries({ "in pieces": readPieces, "in one piece": readCompletely, "after its end": readLater }),
)("a request body read %s", (_name, read) => {
  test.each([1, 1024, 20_000, 60_000])("arrives unchanged (length %i)", async (length) => {
    const bytes = Promise.withResolvers<Uint8Array>();
    using ends = await openEnds(Buffer.of(), 1000, (http1) => {
      const body = new RequestBody(http1, length);
      http1.receiver = { ...receiver, body };
      read(body, length).then(bytes.resolve, bytes.reject);
    });
    ends.client.write(`PUT / HTTP/1.1\r\nhost: x\r\ncontent-length: ${String(length)}\r\n\r\n`);
    ends.client.write(markedBytes(length));
    expect(Buffer.from(await within(bytes.promise, "the body"))).toEqual(markedBytes(length));
  });
});

/** Returns bytes whose sequences hardly repeat. */
function markedBytes(length: number): Buffer {
  return Buffer.from(Uint8Array.from({ length }, (_, at) => (at * at) >>> 3));
}

async function readPieces(body: RequestBody): Promise<Uint8Array> {
  const pieces: Uint8Array[] = [];
  for await (const piece of body.pieces()) pieces.push(piece);
  return Buffer.concat(pieces);
}

test.each([
  ["that was copied", (body: RequestBody) => void readCompletely(body, 1_000_000)],
  ["that arrives after its response", (_: RequestBody, http1: Http1Connection) => http1.respond(200, [], Buffer.of())],
])("a body %s frees its chunks", async (_name, read) => {
  const length = 250_000;
  const chunks: Buffer[] = [];
  using ends = await openEnds(Buffer.of(), 1000, (http1) => {
    const body = new RequestBody(http1, length);
    http1.receiver = { ...receiver, body };
    http1.socket.on("data", (chunk: Buffer) => chunks.push(chunk));
    read(body, http1);
  });
  ends.client.write(`PUT / HTTP/1.1\r\nhost: x\r\ncontent-length: ${String(length)}\r\n\r\n`);
  ends.client.write(Buffer.alloc(length));
  await expect.poll(() => ends.socket.bytesRead).toBeGreaterThan(length);
  // Only some chunks are freed. Not all have a separate buffer, and short ones are left to the garbage collector.
  expect(chunks.some((chunk) => chunk.buffer instanceof ArrayBuffer && chunk.buffer.detached)).toBe(true);
});

function readCompletely(body: RequestBody, length: number): Promise<Uint8Array> {
  const complete = Promise.withResolvers<Uint8Array>();
  body.read(planBody(length), { received: (bytes = Buffer.of()) => complete.resolve(bytes) });
  return complete.promise;
}

test("an exception in onRequest closes the connection before the next request", async () => {
  let requests = 0;
  using ends = await openEnds(Buffer.of(), 1000, (http1) => {
    requests += 1;
    queueMicrotask(() => http1.respond(200, [], Buffer.of()));
    throw new Error("a defect");
  });
  ends.client.write(get.repeat(2));
  await within(once(ends.socket, "close"), "the close of the connection");
  expect(requests).toBe(1);
});

test("a client's reset is detected while the read-ahead buffer is full", async () => {
  const disconnected = Promise.withResolvers<void>();
  let requests = 0;
  using ends = await openEnds(Buffer.of(), 1000, (http1) => {
    requests += 1;
    http1.receiver = { ...receiver, onDisconnect: disconnected.resolve };
  });
  ends.client.write(Buffer.alloc(200_000, get));
  await expect.poll(() => ends.socket.isPaused()).toBe(true);
  ends.client.resetAndDestroy();
  const check = (): boolean => (ends.connection.checkTimeouts(performance.now()), ends.socket.destroyed);
  await expect.poll(check).toBe(true);
  await within(disconnected.promise, "onDisconnect");
  // No other request is served after the response to this call.
  ends.connection.respond(200, [], Buffer.of());
  await new Promise(setImmediate);
  expect(requests).toBe(1);
});

test("a disconnected client's buffered response is freed although its call continues", async () => {
  let piece: WeakRef<Uint8Array> | undefined;
  using ends = await openEnds(Buffer.alloc(16 * 1024 * 1024), 1000, (http1) => {
    const page = Buffer.alloc(16_000_000);
    piece = new WeakRef(page);
    http1.begin(200, []);
    http1.write(page);
  });
  ends.client.write(get);
  await expect.poll(() => ends.budget.bytes).toBeGreaterThan(0);
  ends.client.resetAndDestroy();
  await expect.poll(() => ends.budget.bytes).toBe(0);
  const late = new WeakRef(Buffer.alloc(1_000_000));
  ends.connection.write(late.deref() ?? Buffer.of());
  await new Promise(setImmediate);
  collectGarbage();
  expect([piece?.deref(), late.deref()]).toEqual([undefined, undefined]);
});

test.each(["close", "keep-alive"])("a request head with connection: %s is freed after the response", async (option) => {
  let weakHead: WeakRef<Http1RequestHead> | undefined;
  using ends = await openEnds(Buffer.of(), 1000, (connection, head) => {
    weakHead = new WeakRef(head);
    connection.respond(200, [], Buffer.of());
  });
  ends.client.write(`GET / HTTP/1.1\r\nhost: x\r\nconnection: ${option}\r\n\r\n`);
  await within(once(ends.client.resume(), "data"), "the response");
  collectGarbage();
  expect([weakHead?.deref(), ends.socket.destroyed]).toEqual([undefined, option === "close"]);
});

test("a response without a body has Content-Length 0", async () => {
  using ends = await openEnds(Buffer.alloc(1), 1000, (http1) => http1.respond(200, [], undefined));
  ends.client.write(get);
  const [head] = await within(once(ends.client.resume(), "data"), "the response");
  expect(String(head)).toContain("content-length: 0\r\n");
});

test.each([
  { name: "the handler's field", fields: [["content-length", "5"]], body: undefined },
  { name: "the handler's body", fields: [], body: Buffer.from("order") },
])("$name alone gives a HEAD response its Content-Length", async ({ fields, body }) => {
  using ends = await openEnds(Buffer.alloc(1), 1000, (http1) => http1.respond(200, fields, body));
  ends.client.end("HEAD / HTTP/1.1\r\nhost: x\r\n\r\n".repeat(2));
  const responses = String(await within(buffer(ends.client), "the responses"));
  expect(responses.match(/\r\ncontent-length: 5\r\n/g)).toHaveLength(2);
  expect(responses).not.toContain("order");
});

test("a client stays connected until it reads nothing for the idle timeout", async () => {
  // More than the kernel buffers.
  using ends = await openEnds(Buffer.alloc(64 * 1024 * 1024), defaultLimits.idleTimeoutMs);
  const { client, socket, connection } = ends;
  client.write(get);
  for (let checks = 0; checks < 4; checks++) {
    do {
      await drainOnce(ends);
    } while (socket.writableLength === 0);
    connection.checkTimeouts(performance.now() + defaultLimits.idleTimeoutMs - 1000);
    expect(socket.destroyed).toBe(false);
  }
  connection.checkTimeouts(performance.now() + defaultLimits.idleTimeoutMs);
  expect(socket.destroyed).toBe(true);
});

test("a pipelined request waits until the client reads the previous response", async () => {
  // More than the kernel buffers.
  const page = Buffer.alloc(64 * 1024 * 1024);
  const targets: string[] = [];
  using ends = await openEnds(page, 1000, (http1, { target }) => {
    targets.push(target);
    http1.respond(200, [], target === "/a" ? page : Buffer.of());
  });
  ends.client.write(["/a", "/b"].map((target) => `GET ${target} HTTP/1.1\r\nhost: x\r\n\r\n`).join(""));
  await expect.poll(() => targets).toContain("/a");
  await waitSomeTurns();
  expect(targets).toEqual(["/a"]);
  ends.client.resume();
  await expect.poll(() => targets).toEqual(["/a", "/b"]);
});

test("a half-closed client's pipelined request is served after a large response", async () => {
  const requested = Promise.withResolvers<Http1Connection>();
  const targets: string[] = [];
  using ends = await openEnds(Buffer.alloc(64 * 1024 * 1024), 1000, (connection, { target }) => {
    targets.push(target);
    requested.resolve(connection);
  });
  const ended = once(ends.socket, "end");
  ends.client.end(["/a", "/b"].map((target) => `GET ${target} HTTP/1.1\r\nhost: x\r\n\r\n`).join(""));
  const connection = await within(requested.promise, "the request");
  await within(ended, "the close of the client's side");
  connection.respond(200, [], Buffer.alloc(64 * 1024 * 1024));
  ends.client.resume();
  await expect.poll(() => targets).toEqual(["/a", "/b"]);
});

test("a connection is busy until its client has read the response", async () => {
  using ends = await openEnds(Buffer.alloc(64 * 1024 * 1024), 1000);
  const { client, connection } = ends;
  expect([connection.busy, connection.requests]).toEqual([false, 0]);
  client.write(get);
  await expect.poll(() => [connection.busy, connection.requests]).toEqual([true, 1]);
  client.resume();
  await expect.poll(() => [connection.busy, connection.requests]).toEqual([false, 0]);
});

test("a client that is still reading its last response is not disconnected", async () => {
  using ends = await openRequested(1000, "GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
  ends.connection.begin(200, []);
  while (!ends.connection.write(Buffer.alloc(16 * 1024)));
  ends.connection.end(undefined);
  ends.connection.checkTimeouts(performance.now());
  expect(String((await within(buffer(ends.client), "the response")).subarray(-5))).toBe("0\r\n\r\n");
});

describe("a draining connection", () => {
  const request = "GET / HTTP/1.1\r\nhost: x\r\n";
  test.each([
    ["the last of three pipelined requests", `${request}\r\n`.repeat(3), ["keep-alive", "keep-alive", "close"]],
    ["a request with an incomplete body", `${request}content-length: 5\r\n\r\n`, ["close"]],
  ])("responds to %s before it closes", async (_name, sent, want) => {
    using ends = await openEnds(Buffer.of(), 1000, (http1) => {
      http1.drain();
      http1.respond(200, [], Buffer.of());
    });
    ends.client.write(sent);
    const responses = await within(buffer(ends.client), "the responses");
    expect(Array.from(String(responses).matchAll(/\r\nconnection: (\S+)/g), ([, option]) => option)).toEqual(want);
  });
});

test("a client that stops reading a full socket buffer is disconnected", async () => {
  using ends = await openRequested();
  const { client, socket, connection } = ends;
  connection.begin(200, []);
  const piece = Buffer.alloc(64 * 1024);
  while (!connection.write(piece));
  // More than the kernel buffers, in one write after the buffered one.
  while (socket.writableLength < 32 * 1024 * 1024) connection.write(piece);
  const filledAtMs = performance.now();
  const bufferedBytes = socket.writableLength;
  while (socket.writableLength === bufferedBytes) {
    await within(once(client.resume(), "data"), "some of the response");
    client.pause();
  }
  const readAtMs = performance.now();
  connection.write(piece);
  connection.checkTimeouts((filledAtMs + readAtMs) / 2 + defaultLimits.idleTimeoutMs);
  expect(socket.destroyed).toBe(false);
  await new Promise(setImmediate);
  const laterMs = performance.now();
  connection.write(piece);
  connection.checkTimeouts(laterMs + defaultLimits.idleTimeoutMs);
  expect(socket.destroyed).toBe(true);
});

describe("a piece of a response body", () => {
  test.each([
    { name: "with Content-Length", fields: [["content-length", "100000000"]], bytes: 100, isCopied: false },
    { name: "in a 4 KiB chunk", fields: [], bytes: 4096 - "ff8\r\n\r\n".length, isCopied: true },
    { name: "in a larger chunk", fields: [], bytes: 4097 - "ff8\r\n\r\n".length, isCopied: false },
  ])("uses pooled memory only while the socket buffer is empty ($name)", async ({ fields, bytes, isCopied }) => {
    using ends = await openRequested();
    ends.connection.begin(200, fields);
    const written = recordParts(ends.socket);
    const write = (): { readonly isCopied: boolean; readonly sharesMemory: boolean } => {
      const piece = Buffer.allocUnsafe(bytes);
      ends.connection.write(piece);
      const parts = written.splice(0);
      const sharesMemory = parts.some((part) => part.buffer.byteLength > 2 * part.byteLength);
      return { isCopied: !parts.includes(piece), sharesMemory };
    };
    expect(write()).toEqual({ isCopied, sharesMemory: true });
    while (ends.socket.writableLength === 0) ends.connection.write(Buffer.alloc(16 * 1024));
    written.length = 0;
    expect(write()).toEqual({ isCopied: true, sharesMemory: false });
  });
});

test("the budget counts an unread response again after each drain", async () => {
  const page = Buffer.alloc(64 * 1024 * 1024);
  let writable = 0;
  using ends = await openEnds(page, 1000, (http1) => {
    http1.receiver = { ...receiver, onWritable: () => void (writable += 1) };
    http1.begin(200, [["content-length", String(page.byteLength)]]);
    http1.write(page);
  });
  ends.client.write(get);
  for (let times = 0; times < 3; times++) {
    await drainOnce(ends);
    // A page that is not completely written counts in full, and the socket's buffer in addition.
    expect(ends.budget.bytes).toBe(page.byteLength + ends.socket.writableLength);
  }
  // onWritable is not called before everything was written to the socket.
  expect(writable).toBe(0);
});

test("the budget counts each piece of a streamed response", async () => {
  const piece = Buffer.alloc(16 * 1024);
  using ends = await openRequested();
  ends.connection.begin(200, [["content-length", String(64 * 1024 * 1024)]]);
  while (!ends.connection.write(piece)) expect(ends.budget.bytes).toBe(ends.socket.writableLength);
  expect(ends.budget.bytes).toBe(ends.socket.writableLength);
});

test("an idle client's timeout starts at the first check", async () => {
  using ends = await openEnds(Buffer.of(), defaultLimits.idleTimeoutMs / 2);
  // The client then has the linger time to close its side, which has not passed at the next check.
  const states = [1, 2, 3, 4, 5].map(() => {
    ends.connection.checkTimeouts(performance.now());
    return ends.socket.destroyed ? "closed" : ends.socket.writableEnded ? "closing" : "open";
  });
  expect(states).toEqual(["open", "open", "closing", "closing", "closed"]);
});

test("empty lines do not extend the idle timeout", async () => {
  using ends = await openEnds(Buffer.of(), defaultLimits.idleTimeoutMs / 2);
  const isClosing: boolean[] = [];
  for (let checks = 0; checks < 3; checks++) {
    await sendAndWait(ends, "\r\n");
    ends.connection.checkTimeouts(performance.now());
    isClosing.push(ends.socket.writableEnded);
  }
  expect(isClosing).toEqual([false, false, true]);
});

test("the limit of 16 empty lines applies to each request", async () => {
  using ends = await openEnds(Buffer.of(), 1000);
  const sendEmptyLines = async (): Promise<void> => {
    for (let lines = 0; lines < 16; lines++) await sendAndWait(ends, "\r\n");
  };
  await sendEmptyLines();
  await sendAndWait(ends, "GET /a HTTP/1.1\r\nhost: x\r\n\r\n");
  // Each request arrives together with its empty lines. The cache stores the fields of /b, and so has those of /c.
  for (const path of "bc") await sendAndWait(ends, `${"\r\n".repeat(16)}GET /${path} HTTP/1.1\r\nhost: x\r\n\r\n`);
  await sendEmptyLines();
  expect(ends.socket.writableEnded).toBe(false);
  await sendAndWait(ends, "\r\n");
  expect(ends.socket.writableEnded).toBe(true);
});

test("only the last part of a large response is copied", async () => {
  const page = Buffer.alloc(16 * 1024 * 1024);
  using ends = await openEnds(page, 1000);
  const parts = recordParts(ends.socket);
  const finished = once(ends.socket, "finish");
  ends.client.resume().end(get);
  await within(finished, "the end of the response");
  expect(parts.map((part) => part.buffer === page.buffer)).toEqual([...Array<boolean>(63).fill(true), false]);
});

test("the budget counts the whole response until its last part is written", async () => {
  const page = Buffer.alloc(16 * 1024 * 1024);
  using ends = await openEnds(page, 1000);
  const outsideSocket = new Set<number>();
  ends.socket.on("drain", () => outsideSocket.add(ends.budget.bytes - ends.socket.writableLength));
  ends.client.resume().write(get);
  await expect.poll(() => ends.client.bytesRead).toBeGreaterThan(page.byteLength);
  // The page counts in full until its last part is written.
  await expect.poll(() => [...outsideSocket]).toEqual([page.byteLength, 0]);
});

/** Records the parts that are written to a socket from now on. */
function recordParts(socket: Socket): Uint8Array[] {
  const parts: Uint8Array[] = [];
  const write = socket.write.bind(socket);
  Object.assign(socket, {
    write: (part: Uint8Array | string) => {
      if (typeof part !== "string") parts.push(part);
      return write(part);
    },
  });
  return parts;
}

const mebibytes = 1024 * 1024;

test.each([
  ["frees single-use memory after sending", markSingleUse, mebibytes, 0, undefined],
  ["keeps reusable memory", (page: Uint8Array) => page, mebibytes, mebibytes, undefined],
  // More than the kernel buffers.
  ["keeps single-use memory that the socket buffers", markSingleUse, 32 * mebibytes, 32 * mebibytes, 64 * mebibytes],
])("a large response %s", async (_name, mark, bytes, remaining, highWaterMark) => {
  const want = Buffer.alloc(bytes, "a");
  const page = mark(new Uint8Array(want));
  using ends = await openEnds(page, 1000, (http1) => http1.respond(200, [], page), highWaterMark);
  ends.client.end("GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
  expect((await within(buffer(ends.client), "the response")).subarray(-want.byteLength).equals(want)).toBe(true);
  expect(page.byteLength).toBe(remaining);
});

test("a response header larger than one write is sent once", async () => {
  const page = Buffer.alloc(1024 * 1024, "p");
  const fields = [["large", "x".repeat(1024 * 1024)]];
  using ends = await openEnds(page, 1000, (http1) => http1.respond(200, fields, page));
  ends.client.end(get);
  const [head = "", body] = String(await within(buffer(ends.client), "the response")).split("\r\n\r\n");
  expect([head.match(/large: (x+)\r\n/)?.[1]?.length, body?.length]).toEqual([1024 * 1024, page.byteLength]);
});

test("the idle timeout starts after the response to a long call", async () => {
  using ends = await openRequested(defaultLimits.idleTimeoutMs / 2);
  for (let checks = 0; checks < 4; checks++) ends.connection.checkTimeouts(performance.now());
  ends.connection.respond(200, [], Buffer.of());
  const isClosing = [1, 2, 3].map(() => (ends.connection.checkTimeouts(performance.now()), ends.socket.writableEnded));
  expect(isClosing).toEqual([false, false, true]);
});

test("a half-closed client is not refused while its response continues", async () => {
  let errors = 0;
  using ends = await openEnds(Buffer.of(), defaultLimits.idleTimeoutMs / 4, (http1) => {
    http1.receiver = { ...receiver, onRequestError: () => void (errors += 1) };
    http1.begin(200, []);
  });
  const { client, socket, connection } = ends;
  const [received, ended] = [once(socket, "data"), once(socket, "end")];
  client.write(get);
  await within(received, "the request");
  for (let checks = 0; checks < 3; checks += 1) connection.checkTimeouts(performance.now());
  client.end();
  await within(ended, "the close of the client's side");
  connection.checkTimeouts(performance.now());
  for (let checks = 0; checks < 3; checks += 1) {
    connection.write(Buffer.from("order"));
    connection.checkTimeouts(performance.now());
  }
  expect(errors).toBe(0);
  connection.checkTimeouts(performance.now());
  expect(errors).toBe(1);
});

test("a head that arrives slowly times out", async () => {
  using ends = await openEnds(Buffer.of(), defaultLimits.headerTimeoutMs / 4);
  let checks = 0;
  for (const byte of "GET / HTTP/1.1") {
    if (ends.socket.writableEnded) break;
    await sendAndWait(ends, byte);
    ends.connection.checkTimeouts(performance.now());
    checks++;
  }
  // Between its first byte and the last check, a quarter of the timeout passes four times.
  expect(checks).toBe(5);
});

test("a chunked body times out even if its bytes arrive slowly", async () => {
  let errors = 0;
  using ends = await openEnds(Buffer.of(), defaultLimits.requestTimeoutMs / 4, (http1) => {
    const body = { isAwaited: true, isFull: false, onData: () => false, onEnd: () => {} };
    http1.receiver = { ...receiver, body, onRequestError: () => void (errors += 1) };
    http1.begin(200, []);
  });
  let checks = 0;
  const head = "POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n";
  for (const text of [head, "1", "\r\n", "a", "\r", "\n", "1", "\r\nb\r\n"]) {
    if (errors > 0) break;
    await sendAndWait(ends, text);
    ends.connection.write(Buffer.from("order"));
    ends.connection.checkTimeouts(performance.now());
    checks++;
  }
  expect(checks).toBe(5);
});

test.each([
  { httpMethod: "HEAD", httpStatus: 200 },
  { httpMethod: "GET", httpStatus: 204 },
  { httpMethod: "GET", httpStatus: 304 },
])("a $httpMethod response with status $httpStatus never has a body", async ({ httpMethod, httpStatus }) => {
  using ends = await openEnds(Buffer.of(), 1000, (http1) => {
    http1.begin(httpStatus, []);
    http1.write(Buffer.from("order"));
    http1.end(undefined);
  });
  ends.client.end(`${httpMethod} / HTTP/1.1\r\nhost: x\r\n\r\n`);
  const [head = "", ...rest] = String(await within(buffer(ends.client), "the response")).split("\r\n\r\n");
  expect([head, rest]).toEqual([expect.stringMatching(/\r\nconnection: keep-alive\r\n/), [""]]);
});

test.each([
  ["a chunked body", get, "keep-alive", "5\r\norder\r\n0|"],
  ["an HTTP/1.0 body, which the close ends", "GET / HTTP/1.0\r\nconnection: keep-alive\r\n\r\n", "close", "order"],
])("an empty piece does not end %s", async (_name, request, option, body) => {
  using ends = await openEnds(Buffer.of(), 1000, (http1) => {
    http1.begin(200, []);
    for (const piece of ["", "order"]) http1.write(Buffer.from(piece));
    http1.end(undefined);
  });
  ends.client.end(request);
  const [head, ...rest] = String(await within(buffer(ends.client), "the response")).split("\r\n\r\n");
  expect([/\r\nconnection: (\S+)/.exec(head ?? "")?.[1], rest.join("|")]).toEqual([option, body]);
});

test("a body's request timeout starts after its head", async () => {
  const { requestTimeoutMs, headerTimeoutMs } = defaultLimits;
  let errors = 0;
  using ends = await openEnds(Buffer.of(), Math.min(headerTimeoutMs, requestTimeoutMs) / 4, (http1) => {
    http1.receiver = { ...receiver, onRequestError: () => void (errors += 1) };
  });
  const checkUntil = (enough: (checks: number) => boolean): number => {
    let checks = 0;
    for (; !enough(checks); checks++) ends.connection.checkTimeouts(performance.now());
    return checks;
  };
  await sendAndWait(ends, "POST / HTTP/1.1\r\n");
  checkUntil((checks) => checks === 3);
  await sendAndWait(ends, "host: x\r\ncontent-length: 9\r\n\r\n");
  const checks = checkUntil((made) => errors > 0 || made > 1_000);
  expect(checks).toBe(1 + Math.ceil((4 * requestTimeoutMs) / Math.min(headerTimeoutMs, requestTimeoutMs)));
});

test("every request that awaits 100 Continue gets it before its response", async () => {
  let requests = 0;
  using ends = await openEnds(Buffer.of(), 1000, (http1) => {
    requests++;
    const isBegun = requests !== 2;
    if (isBegun) http1.begin(200, [["content-length", "5"]]);
    http1.startBody();
    if (!isBegun) return http1.respond(200, [], Buffer.of());
    http1.write(Buffer.from("order"));
    http1.end(undefined);
  });
  const received = buffer(ends.client);
  const waits = "PUT / HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 1\r\n\r\n";
  ends.client.write(`${get}${waits}`);
  await expect.poll(() => requests).toBe(2);
  // The client sends the body, so the next request follows it.
  ends.client.write(`!${waits}`);
  const statuses = String(await within(received, "the responses")).matchAll(/HTTP\/1\.1 (\d+)/g);
  expect(Array.from(statuses, ([, status]) => status)).toEqual(["200", "100", "200", "200"]);
});

describe("a response with Content-Length 5", () => {
  const openResponding = (pieces: readonly string[]): Promise<Ends> =>
    openEnds(Buffer.of(), 1, (http1) => {
      http1.begin(200, [["content-length", "5"]]);
      for (const piece of pieces) http1.write(Buffer.from(piece));
      http1.end(undefined);
    });

  test.each([
    { name: "closes the connection if 6 bytes are written in two pieces", pieces: ["order", "s"] },
    { name: "closes the connection if 6 bytes are written in one piece", pieces: ["orders"] },
    { name: "closes the connection if only 4 bytes are written", pieces: ["ord", "e"] },
  ])("$name", async ({ pieces }) => {
    using ends = await openResponding(pieces);
    const received: Buffer[] = [];
    ends.client.on("data", (bytes: Buffer) => received.push(bytes)).on("error", () => {});
    const closed = new Promise((resolve) => ends.client.on("close", resolve));
    ends.client.resume().write(get);
    await within(closed, "the close of the connection");
    expect(ends.socket.destroyed).toBe(true);
    const [, body = ""] = String(Buffer.concat(received)).split("\r\n\r\n");
    expect("order".startsWith(body)).toBe(true);
  });

  test("keeps the connection open if 5 bytes are written", async () => {
    using ends = await openResponding(["ord", "er"]);
    let received = "";
    ends.client.on("data", (bytes: Buffer) => void (received += bytes.toString("latin1")));
    ends.client.resume().write(get);
    await expect.poll(() => received).toMatch(/order$/);
    expect(ends.socket.destroyed).toBe(false);
  });
});
