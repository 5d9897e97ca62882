import { setImmediate as nextTurn } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { ErrorCode, type Http2Stream } from "../../../src/gateway/http2/index.ts";
import { within } from "../../support/deadline.ts";
import { answer, echo, receiving, startEngine } from "../../support/http2-engine.ts";
import {
  dataFrame,
  frame,
  type Frame,
  type FrameConnection,
  frameFlag,
  frameType,
  openFrames,
} from "../../support/http2-frames.ts";
import { answered, begun, goAwayWith, hold, resetWith, whole } from "../../support/http2-requests.ts";

const { endStream, ack } = frameFlag;
const lastOf = (goAway: Frame | undefined): number | undefined => goAway?.payload.readUInt32BE(0);
const nextOf = (connection: FrameConnection, type: number): Promise<Frame | undefined> =>
  connection.readUntil((one) => one.type === type);

/** Keeps the streams it is given until somebody answers them. */
function keeper(): { readonly streams: Http2Stream[]; readonly serve: (stream: Http2Stream) => void } {
  const streams: Http2Stream[] = [];
  return {
    streams,
    serve: (stream) => {
      stream.receiver = receiving(stream);
      streams.push(stream);
    },
  };
}

describe("a connection that is drained", () => {
  test("says so, asks for a round trip, names the last stream, finishes what is there and ends", async () => {
    const { streams, serve } = keeper();
    await using engine = await startEngine({ serve });
    using connection = await openFrames(engine.address);
    connection.send(begun(1));
    await expect.poll(() => streams.length).toBe(1);
    for (const one of engine.connections) one.drain();
    expect(lastOf(await nextOf(connection, frameType.goAway))).toBe(2 ** 31 - 1);
    const ping = await nextOf(connection, frameType.ping);

    // This one crosses the first GOAWAY, so it is taken.
    connection.send(whole(3), frame(frameType.ping, ack, 0, ping?.payload));
    expect(lastOf(await nextOf(connection, frameType.goAway))).toBe(3);
    // This one is above the last; whatever comes of it is passed over, and the client will try it elsewhere.
    connection.send(begun(5), dataFrame(5, Buffer.from("x")), frame(frameType.resetStream, 0, 5, Buffer.alloc(4)));
    connection.send(dataFrame(1, Buffer.from("x"), endStream));
    await expect.poll(() => streams.every(({ remoteEnded }) => remoteEnded)).toBe(true);
    expect(streams.map(({ id }) => id)).toStrictEqual([1, 3]);
    for (const stream of streams) answer(stream);
    const ends = [await connection.readEnd(1), await connection.readEnd(3)];
    expect(ends).toStrictEqual([answered, answered]);
    expect(await connection.readFrame()).toBeUndefined();
  });

  test("ends at once when nothing is open", async () => {
    await using engine = await startEngine();
    using connection = await openFrames(engine.address);
    connection.send(whole(1));
    expect(await connection.readEnd(1)).toStrictEqual(answered);
    for (const one of engine.connections) one.drain();
    const ping = await nextOf(connection, frameType.ping);
    connection.send(frame(frameType.ping, ack, 0, ping?.payload));
    expect(lastOf(await nextOf(connection, frameType.goAway))).toBe(1);
    expect(await connection.readFrame()).toBeUndefined();
  });

  test("does not wait for ever for a client that does not answer the PING", async () => {
    await using engine = await startEngine();
    using connection = await openFrames(engine.address);
    connection.send(whole(1));
    await connection.readEnd(1);
    for (const one of engine.connections) one.drain();
    await nextOf(connection, frameType.ping);
    expect(lastOf(await nextOf(connection, frameType.goAway))).toBe(1);
    expect(await connection.readFrame()).toBeUndefined();
  });

  test("ends a stream of a client that goes on behind the last GOAWAY as any other", async () => {
    const { streams, serve } = keeper();
    await using engine = await startEngine({ serve });
    using connection = await openFrames(engine.address);
    connection.send(begun(1));
    await expect.poll(() => streams.length).toBe(1);
    for (const one of engine.connections) one.drain();
    const ping = await nextOf(connection, frameType.ping);
    connection.send(frame(frameType.ping, ack, 0, ping?.payload), frame(frameType.ping, 0, 1, Buffer.alloc(8)));
    expect(await connection.readEnd(1)).toStrictEqual(goAwayWith(ErrorCode.protocolError));
  });
});

describe("a connection whose client", () => {
  test("ends its side is answered what it asked for", async () => {
    const { streams, serve } = keeper();
    await using engine = await startEngine({ serve });
    using connection = await openFrames(engine.address);
    connection.send(whole(1), begun(3));
    connection.socket.end();
    // The body of the second will never be complete.
    expect(await connection.readEnd(3)).toStrictEqual(resetWith(ErrorCode.cancel));
    for (const stream of streams) answer(stream, Buffer.from("x"));
    expect(await connection.readEnd(1)).toStrictEqual(answered);
    expect(await connection.readFrame()).toBeUndefined();
    await expect.poll(() => engine.connections.size).toBe(0);
  });

  test.each([
    { name: "resets it", end: (connection: FrameConnection) => connection.socket.resetAndDestroy() },
    { name: "closes it", end: (connection: FrameConnection) => connection.socket.destroy() },
  ])("$name while calls are open tells them, and leaves nothing", async ({ end }) => {
    const codes: number[] = [];
    await using engine = await startEngine({
      serve: (stream) => {
        stream.receiver = receiving(stream, { onReset: (code) => codes.push(code) });
        stream.sendHeaders([], false);
        stream.sendData(Buffer.alloc(200_000));
      },
    });
    using connection = await openFrames(engine.address);
    connection.send(begun(1, hold), begun(3, hold));
    await connection.readUntil(({ type }) => type === frameType.data);
    end(connection);
    await expect.poll(() => codes).toStrictEqual([ErrorCode.cancel, ErrorCode.cancel]);
    await expect.poll(() => engine.connections.size).toBe(0);
  });

  test.each([
    {
      name: "says nothing of itself",
      limits: { stallTimeoutMs: 50 },
      sent: [],
      want: ErrorCode.settingsTimeout,
      settled: false,
    },
    {
      name: "does not go on with a header block",
      limits: { stallTimeoutMs: 50 },
      sent: [frame(frameType.headers, 0, 1)],
      want: ErrorCode.protocolError,
      settled: true,
    },
    { name: "has nothing to say", limits: { idleTimeoutMs: 50 }, sent: [], want: ErrorCode.noError, settled: true },
  ])("$name is let go", async ({ limits, sent, want, settled }) => {
    await using engine = await startEngine({ limits });
    using connection = await openFrames(engine.address, { settled });
    connection.send(...sent);
    const goAway = await nextOf(connection, frameType.goAway);
    expect(goAway?.payload.readUInt32BE(4)).toBe(want);
    expect(await connection.readFrame()).toBeUndefined();
  });

  test("is gone without a word is found out by a PING, while a patient one is not disturbed", async () => {
    const codes: number[] = [];
    await using engine = await startEngine({
      limits: { idleTimeoutMs: 40, stallTimeoutMs: 40 },
      serve: (stream) => {
        stream.receiver = receiving(stream, { onReset: (code) => codes.push(code) });
      },
    });
    using patient = await openFrames(engine.address);
    using dead = await openFrames(engine.address);
    patient.send(begun(1));
    dead.send(begun(1));
    for (let pings = 0; pings < 5; pings++) {
      const ping = await nextOf(patient, frameType.ping);
      patient.send(frame(frameType.ping, ack, 0, ping?.payload));
    }
    expect((await dead.readUntil(() => false))?.type).toBeUndefined();
    expect(codes).toStrictEqual([ErrorCode.cancel]);
    expect(engine.connections.size).toBe(1);
  });

  test("owes the rest of a body that is waited for is not waited for without end", async () => {
    await using engine = await startEngine({
      limits: { requestTimeoutMs: 60 },
      serve: (stream) => {
        echo(stream);
        stream.bodyAwaited = stream.id === 3;
      },
    });
    using connection = await openFrames(engine.address);
    connection.send(begun(1), begun(3));
    expect(await connection.readEnd(3)).toStrictEqual(resetWith(ErrorCode.cancel));
    // A stream of messages takes the time it takes.
    connection.send(dataFrame(1, Buffer.from("x"), endStream));
    expect(await connection.readEnd(1)).toStrictEqual(answered);
  });

  test("takes nothing of what it is owed does not hold it without end", async () => {
    await using engine = await startEngine({ limits: { blockedTimeoutMs: 60, stallTimeoutMs: 40 } });
    using connection = await openFrames(engine.address);
    connection.send(
      begun(1),
      dataFrame(1, Buffer.alloc(16_000)),
      ...Array.from({ length: 4 }, () => dataFrame(1, Buffer.alloc(16_000))),
    );
    connection.send(dataFrame(1, Buffer.alloc(0), endStream));
    expect(await connection.readEnd(1)).toStrictEqual({ ...resetWith(ErrorCode.cancel), httpStatus: 200 });
  });

  test("sends and does not read is left once too much waits", async () => {
    await using engine = await startEngine({ limits: { queuedBytes: 100_000, pings: 1_000_000 } });
    using connection = await openFrames(engine.address);
    connection.socket.pause();
    const pings = Buffer.concat(
      Array.from({ length: 1000 }, () => Buffer.from("0000080600000000000000000000000000", "hex")),
    );
    const closed = new Promise((resolve) => connection.socket.once("close", resolve));
    connection.socket.on("error", () => {});
    while (engine.connections.size > 0) {
      connection.socket.write(pings);
      await nextTurn();
    }
    connection.socket.resume();
    await within(closed, "the end of the connection");
  });
});
