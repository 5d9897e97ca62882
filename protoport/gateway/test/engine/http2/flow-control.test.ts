import { setImmediate as nextTurn } from "node:timers/promises";
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { ErrorCode } from "../../../src/http/exchange/index.ts";
import type { Http2Stream } from "../../../src/engine/http2/http2-stream.ts";
// oxfmt-ignore
import { dataFrame, type Frame, frame, type FrameConnection, frameFlag, frameType, openFrames, pingFrame, resetFrame
} from "@protoport/testing/http";
// oxfmt-ignore
import { type Engine, openEngine, pipe, receiving, startEngine, statusBlock
} from "../../../../testing/src/http2/http2-engine.ts";
// oxfmt-ignore
import { answered, begun, echoUnlessHeld, hold, resetWith, settingFrame, windowUpdateFrame
} from "../../../../testing/src/http2/http2-requests.ts";

/** A request that a {@link WindowClient} sends. */
interface WindowStream {
  readonly id: number;
  readonly body: Buffer;
  sentBytes: number;
  /** The window for what we send. */
  sendWindow: number;
  /** The window for what the server sends. */
  receiveWindow: number;
  readonly received: Buffer[];
  /** `undefined` while the stream is open. */
  end: "responded" | "reset" | undefined;
}

/** A client that checks the server's flow control by RFC 9113 §6.9. */
class WindowClient {
  readonly streams: WindowStream[] = [];
  readonly #connection: FrameConnection;
  readonly #choose: (below: number) => number;
  #sendWindow = 65_535;
  #receiveWindow = 65_535;
  #streamSendWindow = 65_535;
  #streamReceiveWindow: number;

  /**
   * @param choose - returns an integer from 0 up to but excluding its argument, which decides the next action and its
   * size
   * @param initialWindowSize - the setting that the client announces (RFC 9113 §6.5.2)
   */
  constructor(connection: FrameConnection, choose: (below: number) => number, initialWindowSize: number) {
    this.#connection = connection;
    this.#choose = choose;
    this.#streamReceiveWindow = initialWindowSize;
    connection.send(settingFrame(4, initialWindowSize));
  }

  /** Opens a stream with a body to send. */
  open(body: Buffer): WindowStream {
    const windows = { sendWindow: this.#streamSendWindow, receiveWindow: this.#streamReceiveWindow };
    const id = this.streams.length * 2 + 1;
    const stream: WindowStream = { id, body, sentBytes: 0, ...windows, received: [], end: undefined };
    this.streams.push(stream);
    this.#connection.send(begun(stream.id));
    return stream;
  }

  /** Resets an open stream. */
  cancel(stream: WindowStream): void {
    if (stream.end === undefined) this.#connection.send(resetFrame(stream.id, 8));
    stream.end = "reset";
  }

  /** Performs random allowed actions until every stream is closed. */
  async run(): Promise<void> {
    while (this.streams.some(({ end }) => end === undefined)) {
      const open = this.streams.filter(({ end }) => end === undefined);
      const stream = open[this.#choose(open.length)];
      const what = this.#choose(4);
      if (stream !== undefined && what < 2 && this.#send(stream)) continue;
      if (stream !== undefined && what === 2) this.#grant(stream);
      else await this.#receive();
    }
  }

  /** Sends part of a body, sometimes with padding. @returns whether the window allowed any bytes */
  #send(stream: WindowStream): boolean {
    const left = stream.body.byteLength - stream.sentBytes;
    const allowed = Math.min(this.#sendWindow, stream.sendWindow, 16_384);
    if (stream.sentBytes < 0 || (left > 0 && allowed <= 0)) return false;
    const bytes = left === 0 ? 0 : 1 + this.#choose(Math.min(left, allowed));
    const padding = allowed > bytes && this.#choose(3) === 0 ? this.#choose(Math.min(256, allowed - bytes)) : undefined;
    const piece = stream.body.subarray(stream.sentBytes, stream.sentBytes + bytes);
    const last = bytes === left;
    const end = last ? frameFlag.endStream : 0;
    const sent =
      padding === undefined
        ? frame(frameType.data, end, stream.id, piece)
        : frame(frameType.data, end | frameFlag.padded, stream.id, pad(piece, padding));
    this.#sendWindow -= sent.payload.byteLength;
    stream.sendWindow -= sent.payload.byteLength;
    // Below zero, nothing may be sent, not even END_STREAM.
    stream.sentBytes = last ? -1 : stream.sentBytes + bytes;
    this.#connection.send(sent);
    return true;
  }

  /** Allows the server to send more. */
  #grant(stream: WindowStream): void {
    const increment = 1 + this.#choose(30_000);
    this.#receiveWindow += increment;
    stream.receiveWindow += increment;
    this.#connection.send(windowUpdateFrame(0, increment), windowUpdateFrame(stream.id, increment));
  }

  async #receive(): Promise<void> {
    // A PING is acknowledged, so there is always a next frame.
    this.#connection.send(pingFrame);
    for (;;) {
      const next = await this.#connection.readFrame();
      if (next === undefined) throw new Error("the connection has closed");
      if (next.type === frameType.ping) return;
      this.#take(next);
    }
  }

  #take({ type, flags, streamId, payload }: Frame): void {
    const stream = this.streams.find(({ id }) => id === streamId);
    if (type === frameType.goAway) throw new Error(`GOAWAY with error code ${String(payload.readUInt32BE(4))}`);
    if (type === frameType.settings && flags === 0) this.#takeSettings(payload);
    if (type === frameType.windowUpdate) this.#takeWindowUpdate(stream, payload.readUInt32BE(0));
    if (stream === undefined) return;
    if (type === frameType.data) this.#takeData(stream, payload);
    if (type === frameType.resetStream) stream.end ??= "reset";
    else if ((flags & frameFlag.endStream) !== 0 && type <= frameType.headers) stream.end ??= "responded";
  }

  #takeSettings(payload: Buffer): void {
    for (let at = 0; at < payload.byteLength; at += 6) {
      if (payload.readUInt16BE(at) !== 4) continue;
      const difference = payload.readUInt32BE(at + 2) - this.#streamSendWindow;
      this.#streamSendWindow += difference;
      for (const stream of this.streams) stream.sendWindow += difference;
    }
  }

  #takeWindowUpdate(stream: WindowStream | undefined, increment: number): void {
    if (stream === undefined) this.#sendWindow += increment;
    else stream.sendWindow += increment;
  }

  #takeData(stream: WindowStream, payload: Buffer): void {
    this.#receiveWindow -= payload.byteLength;
    stream.receiveWindow -= payload.byteLength;
    if (this.#receiveWindow < 0 || stream.receiveWindow < 0) throw new Error("the server has exceeded a window");
    stream.received.push(payload);
  }
}

function pad(piece: Buffer, padding: number): Buffer {
  return Buffer.concat([Buffer.from([padding]), piece, Buffer.alloc(padding)]);
}

const maxWindow = 2 ** 31 - 1;
// Four pieces are less than half a window with 65,535 bytes.
const pieceBytes = 7000;

const bodyFrames = (streamId: number, bytes: number, flags = 0): Frame[] =>
  [0, 1, 2, 3].flatMap((i) => piecesOf(streamId, bytes, i === 3 ? flags : 0));

test("flow control completes every stream in any order of window updates", async () => {
  await using engine = await startEngine({ serve: pipe, limits: { pings: 1e9, windowUpdates: 1e9, emptyData: 1e9 } });
  const request = fc.record({ bytes: fc.nat({ max: 90_000 }), cancelled: fc.boolean() });
  const calls = fc.array(request, { minLength: 1, maxLength: 6 });
  const windows = fc.constantFrom(0, 1, 1000, 65_535, 1_000_000);
  const choices = fc.noShrink(fc.infiniteStream(fc.nat({ max: 2 ** 30 })));
  const property = fc.asyncProperty(calls, windows, choices, async (made, initialWindow, chosen) => {
    using connection = await openFrames(engine.address);
    const client = new WindowClient(connection, (below) => (chosen.next().value ?? 0) % below, initialWindow);
    const streams = made.map(({ bytes }, i) => client.open(Buffer.alloc(bytes, `${String(i)}abcdefghij`)));
    for (const stream of streams.filter((_, i) => made[i]?.cancelled)) client.cancel(stream);
    await client.run();
    for (const stream of streams.filter((_, i) => made[i]?.cancelled === false))
      expect([stream.end, Buffer.concat(stream.received).equals(stream.body)]).toEqual(["responded", true]);
  });
  await fc.assert(property, { numRuns: 25 });
});

test.each(
  // oxfmt-ignore
  Object.entries({
    "is refused for its Content-Length": (id: number) =>
      [begun(id, hold, ["content-length", String(4 * pieceBytes - 1)]), ...bodyFrames(id, pieceBytes)],
    "is refused for its header": (id: number) => [begun(id, ["Upper", "case"]), ...bodyFrames(id, pieceBytes)],
    "is refused for a WINDOW_UPDATE of 0": (id: number) =>
      [begun(id, hold), windowUpdateFrame(id, 0), ...bodyFrames(id, pieceBytes)],
    "gets no response to a complete body": (id: number) =>
      [begun(id, ["used", "1"]), ...bodyFrames(id, pieceBytes), resetFrame(id, 8)],
  }),
)("the connection window is restored after a stream that %s", async (_, framesOf) => {
  const used: string[] = [];
  await using engine = await startEngine({
    serve: (stream, head) => {
      if (!head.fields.includes("used")) return echoUnlessHeld(stream, head);
      stream.receiver = receiving(stream, { onReset: () => used.push("reset") });
    },
    limits: { connectionWindowBytes: 65_535, resets: 1e6, emptyData: 1e6, streamWindowBytes: 65_535 },
  });
  expect(await sendThroughStreams(engine, framesOf)).toBeGreaterThan(2_000_000 - 1);
});

test("an unread body is received only up to the flow-control window", async () => {
  const limits = { streamWindowBytes: 100_000, connectionWindowBytes: 150_000 };
  await using connection = await openEngine({ serve: echoUnlessHeld, limits });
  connection.send(begun(1, hold), begun(3, hold));
  connection.send(...Array.from({ length: 10 }, () => dataFrame(1, Buffer.alloc(10_000))));
  connection.send(pingFrame);
  const frames: (readonly [number, number])[] = [];
  await connection.readUntil(({ type, streamId, flags }) => {
    frames.push([type, streamId]);
    return type === frameType.ping && flags === frameFlag.ack;
  });
  // One update sets the connection window, and none follows for unread bytes.
  expect(frames.filter(([type]) => type === frameType.windowUpdate)).toStrictEqual([[frameType.windowUpdate, 0]]);
  connection.send(dataFrame(1, Buffer.from("x")));
  expect(await connection.readEnd(1)).toStrictEqual(resetWith(ErrorCode.flowControlError));
});

test("a response that the client does not read is sent only up to the flow-control window", async () => {
  let sentBytes = 0;
  await using connection = await openEngine({
    serve: (stream) => {
      stream.receiver = receiving(stream);
      stream.sendHeaders([statusBlock(200)], false);
      sentBytes = sendUntilHeld(stream, Buffer.alloc(1000)) * 1000 - stream.queuedBytes;
    },
  });
  connection.send(begun(1));
  await expect.poll(() => sentBytes).toBe(65_535);
});

test("a response that the client does not read is sent only up to the socket's buffer", async () => {
  let pieces = 0;
  await using connection = await openEngine({
    serve: (stream) => {
      stream.receiver = receiving(stream);
      stream.sendHeaders([statusBlock(200)], false);
      pieces = sendUntilHeld(stream, Buffer.alloc(10_000));
    },
  });
  connection.socket.pause();
  connection.send(settingFrame(4, maxWindow), windowUpdateFrame(0, maxWindow - 65_535), begun(1));
  await expect.poll(() => pieces).toBeGreaterThan(0);
  expect(pieces).toBeLessThan(100);
});

test("a response that the client does not read causes REFUSED_STREAM for further requests until the client reads", async () => {
  await using connection = await openEngine({ limits: { queuedBytes: 100_000 } });
  connection.send(settingFrame(4, 0), begun(1), ...bodyFrames(1, 25_000, frameFlag.endStream));
  await connection.readUntil(({ type }) => type === frameType.headers);
  connection.send(begun(3));
  expect(await connection.readEnd(3)).toMatchObject({ kind: "reset", errorCode: ErrorCode.refusedStream });
  connection.send(windowUpdateFrame(1, 100_000), windowUpdateFrame(0, 100_000));
  expect(await connection.readEnd(1)).toMatchObject({ kind: "responded" });
  connection.send(begun(5), dataFrame(5, Buffer.alloc(0), frameFlag.endStream));
  expect(await connection.readEnd(5)).toStrictEqual(answered);
});

test("a response that the client does not read notifies the server when the response can continue", async () => {
  let writable = 0;
  await using connection = await openEngine({
    serve: (stream) => {
      stream.receiver = receiving(stream, { onWritable: () => (writable += 1) });
      stream.sendHeaders([statusBlock(200)], false);
      stream.sendData(Buffer.alloc(100));
    },
  });
  connection.send(settingFrame(4, 60), begun(1));
  await connection.readUntil(({ type }) => type === frameType.data);
  await nextTurn();
  expect(writable).toBe(0);
  connection.send(windowUpdateFrame(1, 40));
  await connection.readUntil(({ type }) => type === frameType.data);
  await expect.poll(() => writable).toBe(1);
});

/** Sends more than fits unless each stream has returned its bytes to the window. */
async function sendThroughStreams(engine: Engine, framesOf: (streamId: number) => readonly Frame[]): Promise<number> {
  using connection = await openFrames(engine.address);
  let window = 65_535;
  let sent = 0;
  for (let streamId = 3; sent < 2_000_000; streamId += 2) {
    while (window < 4 * pieceBytes) {
      const update = await connection.readUntil((one) => one.type === frameType.windowUpdate && one.streamId === 0);
      if (update === undefined) throw new Error("the connection has closed");
      window += update.payload.readUInt32BE(0);
    }
    connection.send(...framesOf(streamId));
    window -= 4 * pieceBytes;
    sent += 4 * pieceBytes;
  }
  connection.send(begun(100_001), dataFrame(100_001, Buffer.from("x"), frameFlag.endStream));
  expect(await connection.readEnd(100_001)).toStrictEqual(answered);
  return sent;
}

/** Sends pieces until one is queued. */
function sendUntilHeld(stream: Http2Stream, piece: Buffer): number {
  let pieces = 0;
  while (stream.queuedBytes === 0 && pieces < 10_000) {
    stream.sendData(piece);
    pieces += 1;
  }
  return pieces;
}

/** Returns DATA frames with this many bytes in total. */
function piecesOf(streamId: number, bytes: number, flags: number): Frame[] {
  const most = 16_384;
  if (bytes <= most) return [dataFrame(streamId, Buffer.alloc(bytes), flags)];
  return [dataFrame(streamId, Buffer.alloc(most)), ...piecesOf(streamId, bytes - most, flags)];
}
