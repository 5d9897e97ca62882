import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { buffer } from "node:stream/consumers";
import { describe, expect, test } from "vitest";
import {
  BacklogBudget,
  defaultLimits,
  markSingleUse,
  planBody,
  RequestBody,
} from "../../../gateway/src/exchange/index.ts";
import { Http1Connection, type Http1RequestHead, type RequestReceiver } from "../../src/http1/index.ts";
import { collectGarbage } from "../../../testing/src/carriers/held-bytes.ts";
import { listenOnLoopback } from "../../../testing/src/carriers/listen-on-loopback.ts";
import { within } from "../../../testing/src/deadline.ts";
import { someTurns } from "../../../testing/src/some-turns.ts";

const receiver: RequestReceiver = {
  body: undefined,
  onRequestError: () => {},
  onDisconnect: () => {},
  onWritable: () => {},
};

/** Both ends of a connection, of which the server's answers every request with a page. Dispose of it with `using`. */
interface Ends extends Disposable {
  readonly client: Socket;
  readonly socket: Socket;
  readonly connection: Http1Connection;
  readonly budget: BacklogBudget;
}

async function openEnds(
  page: Uint8Array,
  timeoutCheckIntervalMs: number,
  onRequest = (asked: Http1Connection, _head: Http1RequestHead): void => asked.respond(200, [], page),
  highWaterMark?: number,
): Promise<Ends> {
  const accepted = Promise.withResolvers<Pick<Ends, "socket" | "connection">>();
  const budget = new BacklogBudget(2 * page.byteLength);
  const server = createServer({ allowHalfOpen: true, ...(highWaterMark && { highWaterMark }) }, (socket) => {
    const connection = new Http1Connection(socket, {
      limits: defaultLimits,
      timeoutCheckIntervalMs,
      budget,
      onRequest: (asked, head) => {
        asked.receiver = receiver;
        onRequest(asked, head);
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

describe("a body arrives with the bytes that were sent", () => {
  const lengths = [1, 1024, 20_000, 60_000];

  test.each(lengths)("when its %i bytes are read as they arrive", async (length) => {
    expect(await bytesOf(length, readPieces)).toEqual(markedBytes(length));
  });

  test.each(lengths)("when its %i bytes are read as a whole", async (length) => {
    expect(await bytesOf(length, readWhole)).toEqual(markedBytes(length));
  });

  test.each(lengths)("when its %i bytes are read after they have arrived", async (length) => {
    const readLater = async (body: RequestBody): Promise<Uint8Array> => {
      await expect.poll(() => body.ended).toBe(true);
      return await readWhole(body, length);
    };
    expect(await bytesOf(length, readLater)).toEqual(markedBytes(length));
  });

  /** Sends a body, behind the head of its request, and returns what was read of it. */
  async function bytesOf(
    length: number,
    read: (body: RequestBody, length: number) => Promise<Uint8Array>,
  ): Promise<Buffer> {
    const bytes = Promise.withResolvers<Uint8Array>();
    using ends = await openEnds(Buffer.of(), 1000, (asked) => {
      const body = new RequestBody(asked, length);
      asked.receiver = { ...receiver, body };
      read(body, length).then(bytes.resolve, bytes.reject);
    });
    ends.client.write(`PUT / HTTP/1.1\r\nhost: x\r\ncontent-length: ${String(length)}\r\n\r\n`);
    ends.client.write(markedBytes(length));
    return Buffer.from(await within(bytes.promise, "the body"));
  }
});

/** Returns bytes of which hardly any two neighbourhoods are the same. */
function markedBytes(length: number): Buffer {
  return Buffer.from(Uint8Array.from({ length }, (_, at) => (at * at) >>> 3));
}

async function readPieces(body: RequestBody): Promise<Uint8Array> {
  const pieces: Uint8Array[] = [];
  for await (const piece of body.pieces()) pieces.push(piece);
  return Buffer.concat(pieces);
}

test.each([
  { name: "whose bytes were copied", read: (body: RequestBody) => void readWhole(body, 1_000_000) },
  {
    name: "that arrives after its response",
    read: (_: RequestBody, asked: Http1Connection) => asked.respond(200, [], Buffer.of()),
  },
])("the memory of chunks is freed for a body $name", async ({ read }) => {
  const length = 250_000;
  const chunks: Buffer[] = [];
  using ends = await openEnds(Buffer.of(), 1000, (asked) => {
    const body = new RequestBody(asked, length);
    asked.receiver = { ...receiver, body };
    asked.socket.on("data", (chunk: Buffer) => chunks.push(chunk));
    read(body, asked);
  });
  ends.client.write(`PUT / HTTP/1.1\r\nhost: x\r\ncontent-length: ${String(length)}\r\n\r\n`);
  ends.client.write(Buffer.alloc(length));
  await expect.poll(() => ends.socket.bytesRead).toBeGreaterThan(length);
  // Not of all: node shortens the buffer of some chunks only, and what is short is left to the garbage collector.
  expect(chunks.some((chunk) => chunk.buffer instanceof ArrayBuffer && chunk.buffer.detached)).toBe(true);
});

function readWhole(body: RequestBody, length: number): Promise<Uint8Array> {
  const whole = Promise.withResolvers<Uint8Array>();
  body.read(planBody(length), { received: (bytes = Buffer.of()) => whole.resolve(bytes) });
  return whole.promise;
}

test("a defect of ours ends the connection before the request that came with it, though that is answered", async () => {
  let requests = 0;
  using ends = await openEnds(Buffer.of(), 1000, (asked) => {
    requests += 1;
    queueMicrotask(() => asked.respond(200, [], Buffer.of()));
    throw new Error("a defect");
  });
  ends.client.write("GET / HTTP/1.1\r\nhost: x\r\n\r\n".repeat(2));
  await within(once(ends.socket, "close"), "the end of the connection");
  expect(requests).toBe(1);
});

test("a client that has reset its connection is noticed behind requests that fill what is read ahead", async () => {
  const gone = Promise.withResolvers<void>();
  let requests = 0;
  using ends = await openEnds(Buffer.of(), 1000, (asked) => {
    requests += 1;
    asked.receiver = { ...receiver, onDisconnect: gone.resolve };
  });
  ends.client.write(Buffer.alloc(200_000, "GET / HTTP/1.1\r\nhost: x\r\n\r\n"));
  await expect.poll(() => ends.socket.isPaused()).toBe(true);
  ends.client.resetAndDestroy();
  const look = (): boolean => {
    ends.connection.checkTimeouts(performance.now());
    return ends.socket.destroyed;
  };
  await expect.poll(look).toBe(true);
  await within(gone.promise, "the receiver to be told");
  // However its call ends, none of the others is begun.
  ends.connection.respond(200, [], Buffer.of());
  await new Promise(setImmediate);
  expect(requests).toBe(1);
});

test("what waits of an answer is let go with its client, although its call goes on", async () => {
  let piece: WeakRef<Uint8Array> | undefined;
  using ends = await openEnds(Buffer.alloc(16 * 1024 * 1024), 1000, (asked) => {
    const page = Buffer.alloc(16_000_000);
    piece = new WeakRef(page);
    asked.begin(200, []);
    asked.write(page);
  });
  ends.client.write("GET / HTTP/1.1\r\nhost: x\r\n\r\n");
  await expect.poll(() => ends.budget.bytes).toBeGreaterThan(0);
  ends.client.resetAndDestroy();
  await expect.poll(() => ends.budget.bytes).toBe(0);
  const late = new WeakRef(Buffer.alloc(1_000_000));
  ends.connection.write(late.deref() ?? Buffer.of());
  await new Promise(setImmediate);
  collectGarbage();
  expect([piece?.deref(), late.deref()]).toEqual([undefined, undefined]);
});

test.each(["close", "keep-alive"])(
  "a head is not kept longer than its request, with connection: %s",
  async (option) => {
    let asked: WeakRef<Http1RequestHead> | undefined;
    using ends = await openEnds(Buffer.of(), 1000, (connection, head) => {
      asked = new WeakRef(head);
      connection.respond(200, [], Buffer.of());
    });
    ends.client.write(`GET / HTTP/1.1\r\nhost: x\r\nconnection: ${option}\r\n\r\n`);
    await within(once(ends.client.resume(), "data"), "the answer");
    collectGarbage();
    expect(asked?.deref()).toBeUndefined();
    expect(ends.socket.destroyed).toBe(false);
  },
);

test("an answer without a body has a length of 0", async () => {
  using ends = await openEnds(Buffer.alloc(1), 1000, (asked) => asked.respond(200, [], undefined));
  ends.client.write("GET / HTTP/1.1\r\nhost: x\r\n\r\n");
  const [head] = await within(once(ends.client.resume(), "data"), "the answer");
  expect(String(head)).toContain("content-length: 0\r\n");
});

test.each([
  { name: "whose fields say so", fields: [["content-length", "5"]], body: undefined },
  { name: "of which the body is given", fields: [], body: Buffer.from("order") },
])("an answer to HEAD has the length that one to GET would have, $name", async ({ fields, body }) => {
  using ends = await openEnds(Buffer.alloc(1), 1000, (asked) => asked.respond(200, fields, body));
  ends.client.end("HEAD / HTTP/1.1\r\nhost: x\r\n\r\n".repeat(2));
  const answers = String(await within(buffer(ends.client), "the answers"));
  expect(answers.match(/\r\ncontent-length: 5\r\n/g)).toHaveLength(2);
  expect(answers).not.toContain("order");
});

test("a client that takes some of its answer now and then is not cut off, one that takes none is", async () => {
  // More than the system takes by itself.
  const page = Buffer.alloc(64 * 1024 * 1024);
  using ends = await openEnds(page, defaultLimits.idleTimeoutMs);
  const { client, socket, connection } = ends;
  client.write("GET / HTTP/1.1\r\nhost: x\r\n\r\n");
  for (let looks = 0; looks < 4; looks++) {
    do {
      const taken = once(socket, "drain");
      client.resume();
      await within(taken, "a part to be taken");
      client.pause();
    } while (socket.writableLength === 0);
    connection.checkTimeouts(performance.now() + defaultLimits.idleTimeoutMs - 1000);
    expect(socket.destroyed).toBe(false);
  }
  connection.checkTimeouts(performance.now() + defaultLimits.idleTimeoutMs);
  expect(socket.destroyed).toBe(true);
});

test("a request that was read ahead begins once the client has taken the answer before it", async () => {
  // More than the system takes by itself.
  const page = Buffer.alloc(64 * 1024 * 1024);
  const targets: string[] = [];
  using ends = await openEnds(page, 1000, (asked, { target }) => {
    targets.push(target);
    asked.respond(200, [], target === "/a" ? page : Buffer.of());
  });
  ends.client.write(["/a", "/b"].map((target) => `GET ${target} HTTP/1.1\r\nhost: x\r\n\r\n`).join(""));
  await expect.poll(() => targets).toContain("/a");
  await someTurns();
  expect(targets).toEqual(["/a"]);
  ends.client.resume();
  await expect.poll(() => targets).toEqual(["/a", "/b"]);
});

test("a request that was read ahead is answered, though its client has ended its side before a large answer", async () => {
  const asked = Promise.withResolvers<Http1Connection>();
  const targets: string[] = [];
  using ends = await openEnds(Buffer.alloc(64 * 1024 * 1024), 1000, (connection, { target }) => {
    targets.push(target);
    asked.resolve(connection);
  });
  const ended = once(ends.socket, "end");
  ends.client.end(["/a", "/b"].map((target) => `GET ${target} HTTP/1.1\r\nhost: x\r\n\r\n`).join(""));
  const connection = await within(asked.promise, "the request");
  await within(ended, "the end of the client's side");
  connection.respond(200, [], Buffer.alloc(64 * 1024 * 1024));
  ends.client.resume();
  await expect.poll(() => targets).toEqual(["/a", "/b"]);
});

test("a body that was cut short is refused at once behind the answer to the request before it", async () => {
  const asked = Promise.withResolvers<Http1Connection>();
  const targets: string[] = [];
  let broken = 0;
  using ends = await openEnds(Buffer.of(), 1000, (connection, { target }) => {
    targets.push(target);
    connection.receiver = { ...receiver, onRequestError: () => void (broken += 1) };
    asked.resolve(connection);
  });
  const ended = once(ends.socket, "end");
  const [first, second] = ["GET /a HTTP/1.1\r\nhost: x\r\n", "PUT /b HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\n"];
  ends.client.end(`${first}\r\n${second}\r\nord`);
  const connection = await within(asked.promise, "the request");
  await within(ended, "the end of the client's side");
  connection.respond(200, [], Buffer.of());
  await expect.poll(() => ({ targets, broken })).toEqual({ targets: ["/a", "/b"], broken: 1 });
});

test("a connection is busy until its client has taken the answer", async () => {
  using ends = await openEnds(Buffer.alloc(64 * 1024 * 1024), 1000);
  const { client, connection } = ends;
  expect([connection.busy, connection.requests]).toEqual([false, 0]);
  client.write("GET / HTTP/1.1\r\nhost: x\r\n\r\n");
  await expect.poll(() => [connection.busy, connection.requests]).toEqual([true, 1]);
  client.resume();
  await expect.poll(() => [connection.busy, connection.requests]).toEqual([false, 0]);
});

test("a client that has yet to take the end of its last answer is not cut off by a look", async () => {
  const asked = Promise.withResolvers<Http1Connection>();
  using ends = await openEnds(Buffer.alloc(64 * 1024 * 1024), 1000, asked.resolve);
  ends.client.write("GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
  const connection = await within(asked.promise, "the request");
  connection.begin(200, []);
  while (!connection.write(Buffer.alloc(16 * 1024)));
  connection.end(undefined);
  connection.checkTimeouts(performance.now());
  const answer = await within(buffer(ends.client), "the answer");
  expect(String(answer.subarray(-5))).toBe("0\r\n\r\n");
});

describe("a connection that drains ends with the last request that has come", () => {
  const request = "GET / HTTP/1.1\r\nhost: x\r\n";
  test.each([
    { name: "of three at once", sent: `${request}\r\n`.repeat(3), want: ["keep-alive", "keep-alive", "close"] },
    { name: "whose body has yet to come", sent: `${request}content-length: 5\r\n\r\n`, want: ["close"] },
  ])("$name", async ({ sent, want }) => {
    using ends = await openEnds(Buffer.of(), 1000, (asked) => {
      asked.drain();
      asked.respond(200, [], Buffer.of());
    });
    ends.client.write(sent);
    const answers = await within(buffer(ends.client), "the answers");
    const ofEach = Array.from(String(answers).matchAll(/\r\nconnection: (\S+)/g), ([, option]) => option);
    expect(ofEach).toEqual(want);
  });
});

test("a client that takes as much as it is sent meanwhile is not cut off, one that takes none of that is", async () => {
  const asked = Promise.withResolvers<Http1Connection>();
  using ends = await openEnds(Buffer.alloc(64 * 1024 * 1024), 1000, asked.resolve);
  const { client, socket } = ends;
  client.write("GET / HTTP/1.1\r\nhost: x\r\n\r\n");
  const connection = await within(asked.promise, "the request");
  connection.begin(200, []);
  const piece = Buffer.alloc(64 * 1024);
  while (!connection.write(piece));
  // More than the system takes by itself, in one write behind the one that has to wait.
  while (socket.writableLength < 32 * 1024 * 1024) connection.write(piece);
  const filledAtMs = performance.now();
  const held = socket.writableLength;
  while (socket.writableLength === held) {
    await within(once(client.resume(), "data"), "some of the answer");
    client.pause();
  }
  const takenAtMs = performance.now();
  connection.write(piece);
  connection.checkTimeouts((filledAtMs + takenAtMs) / 2 + defaultLimits.idleTimeoutMs);
  expect(socket.destroyed).toBe(false);
  await new Promise(setImmediate);
  const laterMs = performance.now();
  connection.write(piece);
  connection.checkTimeouts(laterMs + defaultLimits.idleTimeoutMs);
  expect(socket.destroyed).toBe(true);
});

describe("a piece shares its memory with others until one has to wait", () => {
  test.each([
    { name: "of a known length", fields: [["content-length", "100000000"]], bytes: 100, isCopied: false },
    { name: "in a chunk, joined with what frames it", fields: [], bytes: 4096 - "ff8\r\n\r\n".length, isCopied: true },
    { name: "in a larger chunk, uncopied", fields: [], bytes: 4097 - "ff8\r\n\r\n".length, isCopied: false },
  ])("$name", async ({ fields, bytes, isCopied }) => {
    const asked = Promise.withResolvers<Http1Connection>();
    using ends = await openEnds(Buffer.alloc(64 * 1024 * 1024), 1000, asked.resolve);
    const { client, socket } = ends;
    client.write("GET / HTTP/1.1\r\nhost: x\r\n\r\n");
    const connection = await within(asked.promise, "the request");
    connection.begin(200, fields);
    const written = seenParts(socket);
    const write = (): { readonly isCopied: boolean; readonly sharesMemory: boolean } => {
      const piece = Buffer.allocUnsafe(bytes);
      connection.write(piece);
      const parts = written.splice(0);
      const sharesMemory = parts.some((part) => part.buffer.byteLength > 2 * part.byteLength);
      return { isCopied: !parts.includes(piece), sharesMemory };
    };
    expect(write()).toEqual({ isCopied, sharesMemory: true });
    while (socket.writableLength === 0) connection.write(Buffer.alloc(16 * 1024));
    written.length = 0;
    expect(write()).toEqual({ isCopied: true, sharesMemory: false });
  });
});

test("what a client has not taken of an answer is counted again whenever it takes some", async () => {
  const page = Buffer.alloc(64 * 1024 * 1024);
  let writable = 0;
  using ends = await openEnds(page, 1000, (asked) => {
    asked.receiver = { ...receiver, onWritable: () => void (writable += 1) };
    asked.begin(200, [["content-length", String(page.byteLength)]]);
    asked.write(page);
  });
  const { client, socket, budget } = ends;
  client.write("GET / HTTP/1.1\r\nhost: x\r\n\r\n");
  for (let times = 0; times < 3; times++) {
    const taken = once(socket, "drain");
    client.resume();
    await within(taken, "a part to be taken");
    client.pause();
    // A page of which a part waits to be written counts as a whole, and what the socket holds once more.
    expect(budget.bytes).toBe(page.byteLength + socket.writableLength);
  }
  // Nor is more asked for before all of it was given to the socket.
  expect(writable).toBe(0);
});

test("what is sent of an answer piece by piece is counted with each piece", async () => {
  const piece = Buffer.alloc(16 * 1024);
  const asked = Promise.withResolvers<Http1Connection>();
  using ends = await openEnds(Buffer.alloc(64 * 1024 * 1024), 1000, asked.resolve);
  const { client, socket, budget } = ends;
  client.write("GET / HTTP/1.1\r\nhost: x\r\n\r\n");
  const connection = await within(asked.promise, "the request");
  connection.begin(200, [["content-length", String(64 * 1024 * 1024)]]);
  while (!connection.write(piece)) expect(budget.bytes).toBe(socket.writableLength);
  expect(budget.bytes).toBe(socket.writableLength);
});

test("a client that says nothing is let go after the idle time, counted from the first look", async () => {
  using ends = await openEnds(Buffer.of(), defaultLimits.idleTimeoutMs / 2);
  const { socket, connection } = ends;
  // Then it has as long to close its side as any other, which is not over at the next look.
  const states = [1, 2, 3, 4, 5].map(() => {
    connection.checkTimeouts(performance.now());
    return socket.destroyed ? "closed" : socket.writableEnded ? "let go" : "open";
  });
  expect(states).toEqual(["open", "open", "let go", "let go", "closed"]);
});

test("a client that sends empty lines now and then is let go when it would have been without them", async () => {
  using ends = await openEnds(Buffer.of(), defaultLimits.idleTimeoutMs / 2);
  const { client, socket, connection } = ends;
  const isLetGo: boolean[] = [];
  for (let looks = 0; looks < 3; looks++) {
    const come = once(socket, "data");
    client.write("\r\n");
    await within(come, "an empty line");
    connection.checkTimeouts(performance.now());
    isLetGo.push(socket.writableEnded);
  }
  expect(isLetGo).toEqual([false, false, true]);
});

test("empty lines before a request are counted wherever they are cut, and only until it comes", async () => {
  using ends = await openEnds(Buffer.of(), 1000);
  const { client, socket } = ends;
  const send = async (text: string): Promise<void> => {
    const come = once(socket, "data");
    client.write(text);
    await within(come, "what was sent");
  };
  // The second has the fields of the first.
  for (const target of ["/a", "/b"]) {
    for (let lines = 0; lines < 16; lines++) await send("\r\n");
    await send(`GET ${target} HTTP/1.1\r\nhost: x\r\n\r\n`);
  }
  for (let lines = 0; lines < 16; lines++) await send("\r\n");
  expect(socket.writableEnded).toBe(false);
  await send("\r\n");
  expect(socket.writableEnded).toBe(true);
});

test("of a large answer its last part alone is copied, which lets go of the rest", async () => {
  const page = Buffer.alloc(64 * 1024 * 1024);
  using ends = await openEnds(page, 1000);
  const { client, socket } = ends;
  const parts = seenParts(socket);
  const finished = once(socket, "finish");
  client.resume().end("GET / HTTP/1.1\r\nhost: x\r\n\r\n");
  await within(finished, "the end of the answer");
  expect(parts.map((part) => part.buffer === page.buffer)).toEqual([...Array<boolean>(255).fill(true), false]);
});

test("of a large answer what the socket holds is counted each time that it has taken more", async () => {
  const page = Buffer.alloc(64 * 1024 * 1024);
  using ends = await openEnds(page, 1000);
  const { client, socket, budget } = ends;
  const besideSocket = new Set<number>();
  socket.on("drain", () => besideSocket.add(budget.bytes - socket.writableLength));
  client.resume().write("GET / HTTP/1.1\r\nhost: x\r\n\r\n");
  await expect.poll(() => client.bytesRead).toBeGreaterThan(page.byteLength);
  // The page counts as a whole until its last part is handed over.
  await expect.poll(() => [...besideSocket]).toEqual([page.byteLength, 0]);
});

/** Returns the bytes that are written to a socket from now on, part by part. */
function seenParts(socket: Socket): Uint8Array[] {
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
  { name: "that nothing else reads is freed once it is taken", mark: markSingleUse, bytes: mebibytes, left: 0 },
  { name: "of the program's own is kept", mark: (page: Uint8Array) => page, bytes: mebibytes, left: mebibytes },
  // More than the system takes by itself.
  {
    name: "that waits in the socket is kept",
    mark: markSingleUse,
    bytes: 32 * mebibytes,
    left: 32 * mebibytes,
    highWaterMark: 64 * mebibytes,
  },
])("a large answer $name", async ({ mark, bytes, left, highWaterMark }) => {
  const want = Buffer.alloc(bytes, "a");
  const page = mark(new Uint8Array(want));
  using ends = await openEnds(page, 1000, (asked) => asked.respond(200, [], page), highWaterMark);
  ends.client.end("GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
  const answer = await within(buffer(ends.client), "the answer");
  expect(answer.subarray(-want.byteLength).equals(want)).toBe(true);
  expect(page.byteLength).toBe(left);
});

test("a head that is larger than a write is sent once", async () => {
  const page = Buffer.alloc(1024 * 1024, "p");
  const fields = [["large", "x".repeat(1024 * 1024)]];
  using ends = await openEnds(page, 1000, (asked) => asked.respond(200, fields, page));
  const { client } = ends;
  const received: Buffer[] = [];
  const ended = once(client, "end");
  client.on("data", (bytes: Buffer) => received.push(bytes));
  client.resume().end("GET / HTTP/1.1\r\nhost: x\r\n\r\n");
  await within(ended, "the end of the answer");
  const [head = "", body] = String(Buffer.concat(received)).split("\r\n\r\n");
  expect(head.match(/large: (x+)\r\n/)?.[1]?.length).toBe(1024 * 1024);
  expect(body?.length).toBe(page.byteLength);
});

test("a client whose call took long has as much time as any other to ask again", async () => {
  const asked = Promise.withResolvers<Http1Connection>();
  using ends = await openEnds(Buffer.of(), defaultLimits.idleTimeoutMs / 2, asked.resolve);
  const { client, socket } = ends;
  client.write("GET / HTTP/1.1\r\nhost: x\r\n\r\n");
  const connection = await within(asked.promise, "the request");
  for (let looks = 0; looks < 4; looks++) connection.checkTimeouts(performance.now());
  connection.respond(200, [], Buffer.of());
  const isLetGo = [1, 2, 3].map(() => {
    connection.checkTimeouts(performance.now());
    return socket.writableEnded;
  });
  expect(isLetGo).toEqual([false, false, true]);
});

test("a client that has ended its side is not given up while it is sent more of its answer", async () => {
  let broken = 0;
  using ends = await openEnds(Buffer.of(), defaultLimits.idleTimeoutMs / 4, (asked) => {
    asked.receiver = { ...receiver, onRequestError: () => void (broken += 1) };
    asked.begin(200, []);
  });
  const { client, socket, connection } = ends;
  const [come, ended] = [once(socket, "data"), once(socket, "end")];
  client.write("GET / HTTP/1.1\r\nhost: x\r\n\r\n");
  await within(come, "the request");
  for (let looks = 0; looks < 3; looks += 1) connection.checkTimeouts(performance.now());
  client.end();
  await within(ended, "the end of the client's side");
  connection.checkTimeouts(performance.now());
  for (let looks = 0; looks < 3; looks += 1) {
    connection.write(Buffer.from("order"));
    connection.checkTimeouts(performance.now());
  }
  expect(broken).toBe(0);
  connection.checkTimeouts(performance.now());
  expect(broken).toBe(1);
});

test("a head that trickles is timed out, however often something of it comes", async () => {
  const { headerTimeoutMs } = defaultLimits;
  using ends = await openEnds(Buffer.of(), headerTimeoutMs / 4);
  const { client, socket, connection } = ends;
  let looks = 0;
  for (const byte of "GET / HTTP/1.1") {
    if (socket.writableEnded) break;
    const come = once(socket, "data");
    client.write(byte);
    await within(come, "a byte");
    connection.checkTimeouts(performance.now());
    looks++;
  }
  // Between its first byte and the last look a quarter of the time passes four times.
  expect(looks).toBe(5);
});

test("a body in chunks that trickles is timed out, wherever its chunks are cut, and whatever is answered", async () => {
  const { requestTimeoutMs } = defaultLimits;
  let broken = 0;
  using ends = await openEnds(Buffer.of(), requestTimeoutMs / 4, (asked) => {
    const body = { isAwaited: true, isFull: false, onData: () => false, onEnd: () => {} };
    asked.receiver = { ...receiver, body, onRequestError: () => void (broken += 1) };
    asked.begin(200, []);
  });
  const { client, socket, connection } = ends;
  let looks = 0;
  const head = "POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n";
  for (const text of [head, "1", "\r\n", "a", "\r", "\n", "1", "\r\nb\r\n"]) {
    if (broken > 0) break;
    const come = once(socket, "data");
    client.write(text);
    await within(come, "a part");
    connection.write(Buffer.from("order"));
    connection.checkTimeouts(performance.now());
    looks++;
  }
  expect(looks).toBe(5);
});

test.each([
  { httpMethod: "HEAD", httpStatus: 200 },
  { httpMethod: "GET", httpStatus: 204 },
  { httpMethod: "GET", httpStatus: 304 },
])("an answer of $httpStatus to $httpMethod has no body, whatever is written", async ({ httpMethod, httpStatus }) => {
  using ends = await openEnds(Buffer.of(), 1000, (asked) => {
    asked.begin(httpStatus, []);
    asked.write(Buffer.from("order"));
    asked.end(undefined);
  });
  const { client } = ends;
  const received: Buffer[] = [];
  const ended = once(client, "end");
  client.on("data", (bytes: Buffer) => received.push(bytes));
  client.resume().end(`${httpMethod} / HTTP/1.1\r\nhost: x\r\n\r\n`);
  await within(ended, "the end of the connection");
  const [head = "", ...rest] = String(Buffer.concat(received)).split("\r\n\r\n");
  expect(head).toMatch(/\r\nconnection: keep-alive\r\n/);
  expect(rest).toEqual([""]);
});

test("an empty piece does not end a body in chunks", async () => {
  using ends = await openEnds(Buffer.of(), 1000, (asked) => {
    asked.begin(200, []);
    for (const piece of ["", "order"]) asked.write(Buffer.from(piece));
    asked.end(undefined);
  });
  ends.client.end("GET / HTTP/1.1\r\nhost: x\r\n\r\n");
  const answer = await within(buffer(ends.client), "the answer");
  expect(String(answer).split("\r\n\r\n").slice(1).join("|")).toBe("5\r\norder\r\n0|");
});

test("a body has all its time although its head took some", async () => {
  const { requestTimeoutMs, headerTimeoutMs } = defaultLimits;
  let broken = 0;
  using ends = await openEnds(Buffer.of(), Math.min(headerTimeoutMs, requestTimeoutMs) / 4, (asked) => {
    asked.receiver = { ...receiver, onRequestError: () => void (broken += 1) };
  });
  const { client, socket, connection } = ends;
  const send = async (text: string): Promise<void> => {
    const come = once(socket, "data");
    client.write(text);
    await within(come, "what was sent");
  };
  const lookUntil = (enough: (looks: number) => boolean): number => {
    let looks = 0;
    for (; !enough(looks); looks++) connection.checkTimeouts(performance.now());
    return looks;
  };
  await send("POST / HTTP/1.1\r\n");
  lookUntil((looks) => looks === 3);
  await send("host: x\r\ncontent-length: 9\r\n\r\n");
  const looks = lookUntil((made) => broken > 0 || made > 1_000);
  expect(looks).toBe(1 + Math.ceil((4 * requestTimeoutMs) / Math.min(headerTimeoutMs, requestTimeoutMs)));
});

test("a client that waits to send its body is told to with each request, unless its answer has begun", async () => {
  let requests = 0;
  using ends = await openEnds(Buffer.of(), 1000, (asked) => {
    requests++;
    const isBegun = requests !== 2;
    if (isBegun) asked.begin(200, [["content-length", "5"]]);
    asked.startBody();
    if (!isBegun) return asked.respond(200, [], Buffer.of());
    asked.write(Buffer.from("order"));
    asked.end(undefined);
  });
  const { client } = ends;
  const received: Buffer[] = [];
  const ended = once(client, "end");
  client.on("data", (bytes: Buffer) => received.push(bytes));
  const waits = "PUT / HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 1\r\n\r\n";
  client.resume().write(`GET / HTTP/1.1\r\nhost: x\r\n\r\n${waits}`);
  await expect.poll(() => requests).toBe(2);
  // It was told to send it, so the next request comes behind it.
  client.write(`!${waits}`);
  await within(ended, "the end of the connection");
  const statuses = String(Buffer.concat(received)).matchAll(/HTTP\/1\.1 (\d+)/g);
  expect(Array.from(statuses, ([, status]) => status)).toEqual(["200", "100", "200", "200"]);
});

describe("an answer that announced 5 bytes ends the connection", () => {
  test.each([
    { name: "with 6, of which the last would be taken for the next answer", pieces: ["order", "s"] },
    { name: "with 6 at once", pieces: ["orders"] },
    { name: "with 4", pieces: ["ord", "e"] },
  ])("$name", async ({ pieces }) => {
    using ends = await openEnds(Buffer.of(), 1, (asked) => {
      asked.begin(200, [["content-length", "5"]]);
      for (const piece of pieces) asked.write(Buffer.from(piece));
      asked.end(undefined);
    });
    const { client, socket } = ends;
    const received: Buffer[] = [];
    client.on("data", (bytes: Buffer) => received.push(bytes)).on("error", () => {});
    const closed = new Promise((resolve) => client.on("close", resolve));
    client.resume().write("GET / HTTP/1.1\r\nhost: x\r\n\r\n");
    await within(closed, "the end of the connection");
    expect(socket.destroyed).toBe(true);
    const [, body = ""] = String(Buffer.concat(received)).split("\r\n\r\n");
    expect("order".startsWith(body)).toBe(true);
  });

  test("with 5 not", async () => {
    using ends = await openEnds(Buffer.of(), 1, (asked) => {
      asked.begin(200, [["content-length", "5"]]);
      for (const piece of ["ord", "er"]) asked.write(Buffer.from(piece));
      asked.end(undefined);
    });
    const { client, socket } = ends;
    const ended = new Promise<void>((resolve) => {
      let all = "";
      client.on("data", (bytes: Buffer) => {
        all += bytes.toString("latin1");
        if (all.endsWith("order")) resolve();
      });
    });
    client.resume().write("GET / HTTP/1.1\r\nhost: x\r\n\r\n");
    await within(ended, "the answer");
    expect(socket.destroyed).toBe(false);
  });
});
