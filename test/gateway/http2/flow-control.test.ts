import { setImmediate as nextTurn } from "node:timers/promises";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { ErrorCode } from "../../../src/gateway/carriers/index.ts";
import type { Http2Stream } from "../../../src/gateway/http2/index.ts";
import { type Engine, pipe, receiving, startEngine, statusBlock } from "../../support/http2/http2-engine.ts";
import {
  dataFrame,
  type Frame,
  frame,
  frameFlag,
  frameType,
  openFrames,
  resetFrame,
} from "../../support/carriers/http2-frames.ts";
import {
  answered,
  begun,
  echoUnlessHeld,
  hold,
  settingFrame,
  windowUpdateFrame,
} from "../../support/http2/http2-requests.ts";
import { WindowClient } from "../../support/http2/http2-window-client.ts";

const windowMax = 2 ** 31 - 1;
// Four of them are less than what a window of 65,535 bytes has at least, if it is opened again by halves.
const pieceBytes = 7000;

const bodyFrames = (streamId: number, bytes: number, flags = 0): Frame[] =>
  [0, 1, 2, 3].flatMap((i) => piecesOf(streamId, bytes, i === 3 ? flags : 0));

describe("whatever the order in which streams go on and windows are opened", () => {
  test("each that is not cancelled is answered as it would have been alone", async () => {
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
      for (const stream of streams.filter((_, i) => made[i]?.cancelled === false)) {
        expect(stream.end).toBe("answered");
        expect(Buffer.concat(stream.received).equals(stream.body)).toBe(true);
      }
    });
    await fc.assert(property, { numRuns: 25 });
  });
});

describe("the connection's window", () => {
  test.each([
    ["is reset by the client", (id: number) => [begun(id, hold), ...bodyFrames(id, pieceBytes), resetFrame(id, 8)]],
    [
      "is refused for its length",
      (id: number) => [begun(id, hold, ["content-length", String(4 * pieceBytes - 1)]), ...bodyFrames(id, pieceBytes)],
    ],
    ["is refused for its header", (id: number) => [begun(id, ["Upper", "case"]), ...bodyFrames(id, pieceBytes)]],
    [
      "is refused for an update of nothing",
      (id: number) => [begun(id, hold), windowUpdateFrame(id, 0), ...bodyFrames(id, pieceBytes)],
    ],
    [
      "sends nothing but padding",
      (id: number) => [
        begun(id, hold),
        ...Array.from({ length: (4 * pieceBytes) / 250 }, () =>
          frame(frameType.data, frameFlag.padded, id, Buffer.concat([Buffer.from([249]), Buffer.alloc(249)])),
        ),
        resetFrame(id, 8),
      ],
    ],
    [
      "is used up and never answered",
      (id: number) => [begun(id, ["used", "1"]), ...bodyFrames(id, pieceBytes), resetFrame(id, 8)],
    ],
  ])("is as wide as before behind a stream that %s", async (_, leave) => {
    const used: string[] = [];
    await using engine = await startEngine({
      serve: (stream, head) => {
        if (!head.fields.includes("used")) return echoUnlessHeld(stream, head);
        stream.receiver = receiving(stream, { onReset: () => used.push("reset") });
      },
      limits: { connectionWindowBytes: 65_535, resets: 1e6, emptyData: 1e6, streamWindowBytes: 65_535 },
    });
    expect(await sendThroughStreams(engine, leave)).toBeGreaterThan(2_000_000 - 1);
  });
});

describe("a body that nobody reads", () => {
  test("is not taken in beyond the windows", async () => {
    const limits = { streamWindowBytes: 100_000, connectionWindowBytes: 150_000 };
    await using engine = await startEngine({ serve: echoUnlessHeld, limits });
    using connection = await openFrames(engine.address);
    connection.send(
      begun(1, hold),
      begun(3, hold),
      ...Array.from({ length: 10 }, () => dataFrame(1, Buffer.alloc(10_000))),
    );
    connection.send(frame(frameType.ping, 0, 0, Buffer.alloc(8)));
    const seen: (readonly [number, number])[] = [];
    await connection.readUntil(({ type, streamId, flags }) => {
      seen.push([type, streamId]);
      return type === frameType.ping && flags === frameFlag.ack;
    });
    // One update makes the connection's window what it is, and none follows for what was not read.
    expect(seen.filter(([type]) => type === frameType.windowUpdate)).toStrictEqual([[frameType.windowUpdate, 0]]);
    connection.send(dataFrame(1, Buffer.from("x")));
    expect(await connection.readEnd(1)).toStrictEqual({
      kind: "reset",
      httpStatus: 0,
      errorCode: ErrorCode.flowControlError,
    });
  });
});

describe("an answer that nobody takes", () => {
  test("is not sent beyond the windows", async () => {
    let sentBytes = 0;
    await using engine = await startEngine({
      serve: (stream) => {
        stream.receiver = receiving(stream);
        stream.sendHeaders([statusBlock(200)], false);
        sentBytes = sendUntilHeld(stream, Buffer.alloc(1000)) * 1000 - stream.queuedBytes;
      },
    });
    using connection = await openFrames(engine.address);
    connection.send(begun(1));
    await expect.poll(() => sentBytes).toBe(65_535);
  });

  test("is not sent beyond what the socket takes, also when the server never waits for anything", async () => {
    let pieces = 0;
    await using engine = await startEngine({
      serve: (stream) => {
        stream.receiver = receiving(stream);
        stream.sendHeaders([statusBlock(200)], false);
        pieces = sendUntilHeld(stream, Buffer.alloc(10_000));
      },
    });
    using connection = await openFrames(engine.address);
    connection.socket.pause();
    connection.send(settingFrame(4, windowMax), windowUpdateFrame(0, windowMax - 65_535), begun(1));
    await expect.poll(() => pieces).toBeGreaterThan(0);
    expect(pieces).toBeLessThan(100);
  });

  test("goes on where it stopped once it is taken", async () => {
    const body = Buffer.alloc(3_000_000, "0123456789");
    await using engine = await startEngine({
      serve: (stream) => {
        stream.receiver = receiving(stream);
        stream.sendHeaders([statusBlock(200)], false);
        stream.end(body, undefined);
      },
    });
    using connection = await openFrames(engine.address);
    connection.send(settingFrame(4, windowMax), windowUpdateFrame(0, windowMax - 65_535), begun(1));
    const received: Buffer[] = [];
    await connection.readUntil(({ type, flags, payload }) => {
      if (type === frameType.data) received.push(payload);
      return type === frameType.data && (flags & frameFlag.endStream) !== 0;
    });
    expect(Buffer.concat(received).equals(body)).toBe(true);
  });

  test("has further requests refused, which may be tried again, until it is taken", async () => {
    await using engine = await startEngine({ limits: { queuedBytes: 100_000 } });
    using connection = await openFrames(engine.address);
    connection.send(settingFrame(4, 0), begun(1), ...bodyFrames(1, 25_000, frameFlag.endStream));
    await connection.readUntil(({ type }) => type === frameType.headers);
    connection.send(begun(3));
    expect(await connection.readEnd(3)).toMatchObject({ kind: "reset", errorCode: ErrorCode.refusedStream });
    connection.send(windowUpdateFrame(1, 100_000), windowUpdateFrame(0, 100_000));
    expect(await connection.readEnd(1)).toMatchObject({ kind: "answered" });
    connection.send(begun(5), dataFrame(5, Buffer.alloc(0), frameFlag.endStream));
    expect(await connection.readEnd(5)).toStrictEqual(answered);
  });

  test("tells its server when it may go on", async () => {
    let writable = 0;
    await using engine = await startEngine({
      serve: (stream) => {
        stream.receiver = receiving(stream, { onWritable: () => (writable += 1) });
        stream.sendHeaders([statusBlock(200)], false);
        stream.sendData(Buffer.alloc(100));
      },
    });
    using connection = await openFrames(engine.address);
    connection.send(settingFrame(4, 60), begun(1));
    await connection.readUntil(({ type }) => type === frameType.data);
    await nextTurn();
    expect(writable).toBe(0);
    connection.send(windowUpdateFrame(1, 40));
    await connection.readUntil(({ type }) => type === frameType.data);
    await expect.poll(() => writable).toBe(1);
  });
});

/** Sends so much that it only fits if what each stream took of the window was given back. */
async function sendThroughStreams(engine: Engine, leave: (streamId: number) => readonly Frame[]): Promise<number> {
  using connection = await openFrames(engine.address);
  let window = 65_535;
  let sent = 0;
  for (let streamId = 3; sent < 2_000_000; streamId += 2) {
    while (window < 4 * pieceBytes) {
      const update = await connection.readUntil(
        ({ type, streamId: id }) => type === frameType.windowUpdate && id === 0,
      );
      if (update === undefined) throw new Error("the connection has ended");
      window += update.payload.readUInt32BE(0);
    }
    connection.send(...leave(streamId));
    window -= 4 * pieceBytes;
    sent += 4 * pieceBytes;
  }
  connection.send(begun(100_001), dataFrame(100_001, Buffer.from("x"), frameFlag.endStream));
  expect(await connection.readEnd(100_001)).toStrictEqual(answered);
  return sent;
}

/** Sends pieces for as long as they go out. */
function sendUntilHeld(stream: Http2Stream, piece: Buffer): number {
  let pieces = 0;
  while (stream.queuedBytes === 0 && pieces < 10_000) {
    stream.sendData(piece);
    pieces += 1;
  }
  return pieces;
}

/** DATA frames of so many bytes together. */
function piecesOf(streamId: number, bytes: number, flags: number): Frame[] {
  const most = 16_384;
  if (bytes <= most) return [dataFrame(streamId, Buffer.alloc(bytes), flags)];
  return [dataFrame(streamId, Buffer.alloc(most)), ...piecesOf(streamId, bytes - most, flags)];
}
