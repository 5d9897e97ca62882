import { once } from "node:events";
import { createServer, type Socket } from "node:net";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import {
  BacklogBudget,
  defaultLimits,
  type Exchange,
  type RequestBody,
} from "../../../../src/gateway/carriers/index.ts";
import { createOwnHttp2Server } from "../../../../src/gateway/carriers/sockets/own-http2-server.ts";
import {
  dataFrame,
  type FrameConnection,
  frameBytes,
  frameFlag,
  headersFrame,
  openFrames,
} from "../../../support/carriers/http2-frames.ts";
import { listenOnLoopback } from "../../../support/carriers/listen-on-loopback.ts";
import { collect } from "../../../support/collect.ts";
import { within } from "../../../support/deadline.ts";
import { postHeader } from "../../../support/http2/http2-requests.ts";

// What clients send over HTTP/2, each over a connection of its own, while all of them are read into one memory.

interface Client {
  /** The byte that its bodies consist of, and that is in no frame of the others. */
  readonly mark: number;
  readonly sent: FrameConnection;
  readonly accepted: Socket;
}

const clients: Client[] = [];
let exchanges: Exchange[];
let onRequest: (exchange: Exchange) => void;
let close: () => void;

beforeEach(async () => {
  exchanges = [];
  onRequest = () => {};
  const http2 = createOwnHttp2Server({
    limits: defaultLimits,
    budget: new BacklogBudget(2 ** 30),
    serve: (exchange) => {
      exchanges.push(exchange);
      onRequest(exchange);
    },
    refuse: (exchange, { httpStatus }) => exchange.answer(httpStatus, []),
    server: () => undefined,
    countError: () => {},
    report: (error) => {
      throw error;
    },
  });
  const sockets: Socket[] = [];
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
    sockets.push(socket);
    http2.take(socket);
  });
  const { hostname, port } = new URL(await listenOnLoopback(server));
  for (const mark of [0xf1, 0xf2, 0xf3]) {
    const sent = await openFrames({ address: hostname, port: Number(port) });
    await within(sent.readFrame(), "the server's settings");
    const accepted = sockets.at(-1);
    if (accepted === undefined) throw new Error("no connection was accepted");
    clients.push({ mark, sent, accepted });
  }
  close = () => {
    for (const { sent } of clients.splice(0)) sent[Symbol.dispose]();
    for (const socket of sockets) socket.destroy();
    http2.close();
    server.close();
  };
});
afterEach(() => close());

/** Writes bytes of a client, and waits until all that it has written is read. */
async function send({ sent, accepted }: Client, bytes: Buffer): Promise<void> {
  if (bytes.byteLength === 0) return;
  const writtenBefore = sent.socket.bytesWritten;
  sent.socket.write(bytes);
  while (accepted.bytesRead < writtenBefore + bytes.byteLength)
    await within(once(accepted, "data"), "bytes to be read");
}

/** Has all clients send a request, cut at the same byte: all first parts arrive before all second ones. */
async function sendCut(cutAt: (bytes: number) => number, streamId: number, bodyBytes: number): Promise<void> {
  const requests = clients.map(({ mark }) => {
    const header = headersFrame(streamId, postHeader(["x-mark", String(mark)]));
    const frames = [header];
    for (let left = bodyBytes; left > 0; left -= 16_384) {
      const flags = left <= 16_384 ? frameFlag.endStream : 0;
      frames.push(dataFrame(streamId, Buffer.alloc(Math.min(left, 16_384), mark), flags));
    }
    return Buffer.concat(frames.map(frameBytes));
  });
  for (const part of ["first", "second"]) {
    for (const [i, client] of clients.entries()) {
      const bytes = requests[i] ?? Buffer.of();
      const cut = cutAt(bytes.byteLength);
      await send(client, part === "first" ? bytes.subarray(0, cut) : bytes.subarray(cut));
    }
  }
}

function bodyOf({ body }: Exchange): RequestBody {
  if (body === undefined) throw new TypeError("the request has no body");
  return body;
}

function readWhole(exchange: Exchange): Promise<Uint8Array[]> {
  const whole = Promise.withResolvers<Uint8Array[]>();
  const received = (bytes = Buffer.of()): void => whole.resolve([bytes]);
  bodyOf(exchange).read(2 ** 20, { announcedBytes: () => 0, received });
  return whole.promise;
}

/** Expects the bytes of the clients' bodies, and then of those that are left while one after the other is transferred. */
function expectOwn(bodies: readonly (readonly Uint8Array[])[], bodyBytes: number): void {
  const marks = exchanges.map((exchange) => Number(exchange.get("x-mark")));
  expect(marks).toEqual(clients.map(({ mark }) => mark));
  for (const [i, pieces] of bodies.entries()) {
    for (const [later, mark] of marks.entries()) {
      if (later >= i) expect(Buffer.concat(bodies[later] ?? []).equals(Buffer.alloc(bodyBytes, mark))).toBe(true);
    }
    const buffers = new Set(pieces.map(({ buffer }) => buffer));
    const transfer = [...buffers].filter((buffer) => buffer instanceof ArrayBuffer);
    structuredClone(transfer, { transfer });
  }
}

describe("what came of a body over one connection is not what came over another one since", () => {
  const rows = [1, 64, 1_024, 4_000, 3 * 16_384 + 100].flatMap((bodyBytes) => [
    { bodyBytes, cut: "in its middle", cutAt: (bytes: number) => bytes >>> 1 },
    { bodyBytes, cut: "nowhere", cutAt: (bytes: number) => bytes },
  ]);

  test.each(rows)("of $bodyBytes bytes, cut $cut, read as they come", async ({ bodyBytes, cutAt }) => {
    const bodies: Promise<Uint8Array[]>[] = [];
    onRequest = (exchange) => bodies.push(collect(bodyOf(exchange).pieces()));
    await sendCut(cutAt, 1, bodyBytes);
    expectOwn(await within(Promise.all(bodies), "the bodies"), bodyBytes);
  });

  test.each(rows)("of $bodyBytes bytes, cut $cut, read as a whole", async ({ bodyBytes, cutAt }) => {
    const bodies: Promise<Uint8Array[]>[] = [];
    onRequest = (exchange) => bodies.push(readWhole(exchange));
    await sendCut(cutAt, 1, bodyBytes);
    expectOwn(await within(Promise.all(bodies), "the bodies"), bodyBytes);
  });

  test.each(rows)("of $bodyBytes bytes, cut $cut, that nobody has read yet", async ({ bodyBytes, cutAt }) => {
    await sendCut(cutAt, 1, bodyBytes);
    expectOwn(await within(Promise.all(exchanges.map(readWhole)), "the bodies"), bodyBytes);
  });
});

test("a request is that of its own connection at whichever byte it is cut", async () => {
  let bodies: Promise<Uint8Array[]>[] = [];
  onRequest = (exchange) => bodies.push(readWhole(exchange));
  const requestBytes = frameBytes(headersFrame(1, postHeader(["x-mark", "241"]))).byteLength + 9 + 8;
  for (let cut = 1; cut < requestBytes; cut++) {
    await sendCut(() => cut, 2 * cut - 1, 8);
    expectOwn(await within(Promise.all(bodies), "the bodies"), 8);
    for (const exchange of exchanges) exchange.answer(200, []);
    exchanges = [];
    bodies = [];
  }
});

test("the sockets of all connections are read into one memory", () => {
  const memories = clients.map(({ accepted }) => {
    const key = Object.getOwnPropertySymbols(accepted).find(({ description }) => description === "kBuffer");
    return key && Reflect.get(accepted, key)?.buffer;
  });
  expect(new Set(memories).size).toBe(1);
  expect(memories[0]).toBeInstanceOf(ArrayBuffer);
});
