import { once } from "node:events";
import { type Duplex, duplexPair } from "node:stream";
import { setImmediate as nextTurn } from "node:timers/promises";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { ErrorCode } from "../../../src/http/exchange/index.ts";
import { BacklogBudget } from "../../../src/engine/backlog.ts";
import { defaultHttp2Limits } from "../../../src/engine/http2/http2-limits.ts";
import { encodeBlock } from "../../../src/engine/http2/hpack/encoder.ts";
import type { Http2Stream } from "../../../src/engine/http2/http2-stream.ts";
import { within } from "@protoport/testing/process";
import { useFakeClock } from "../../../../testing/src/fake-clock.ts";
// oxfmt-ignore
import { answer, openEngine, receiving, serveConnection, startEngine, statusBlock
} from "../../../../testing/src/http2/http2-engine.ts";
// oxfmt-ignore
import { clientPreface, dataFrame, frame, type Frame, frameBytes, type FrameConnection, frameFlag, frameType,
  openFrames, pingFrame, readFrames } from "@protoport/testing/http";
// oxfmt-ignore
import { answered, begun, goAwayWith, hold, resetWith, settingFrame, whole, windowUpdateFrame
} from "../../../../testing/src/http2/http2-requests.ts";

const { endStream, ack } = frameFlag;
const alive = pingFrame;
const lastOf = (goAway: Frame | undefined): number | undefined => goAway?.payload.readUInt32BE(0);
const nextOf = (connection: FrameConnection, type: number): Promise<Frame | undefined> =>
  connection.readUntil((one) => one.type === type);

const hour = 3_600_000;
/** Limits with which no deadline is checked. */
const farTimeouts = { idleTimeoutMs: hour, stallTimeoutMs: hour, blockedTimeoutMs: hour, requestTimeoutMs: hour };
const farOff = { ...farTimeouts, intervalMs: hour };

/** The first bytes that a client sends. */
const opening = Buffer.concat([
  clientPreface,
  ...[frame(frameType.settings, 0, 0), frame(frameType.settings, ack, 0)].map(frameBytes),
]);

/** A connection without a kernel buffer between both ends. Dispose it with `using`. */
function quietPair(): { readonly client: Duplex; readonly server: Duplex; [Symbol.dispose](): void } {
  const [client, server]: Duplex[] = duplexPair();
  if (client === undefined || server === undefined) throw new Error("there is no pair");
  const dispose = (): void => [client, server].forEach((end) => end.destroy());
  return { client, server, [Symbol.dispose]: dispose };
}

/** Keeps its streams until the test responds. */
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

/** The header blocks of a response with about 1000 bytes. */
const kilobyte = [statusBlock(200), encodeBlock(["x", "y".repeat(1000)])];

/** A handler that always has something to send. */
function sendEndlessly(stream: Http2Stream): void {
  const write = (): void => stream.sendData(Buffer.alloc(10_000));
  stream.receiver = receiving(stream, { onWritable: () => setImmediate(write) });
  stream.sendHeaders([statusBlock(200)], false);
  for (let i = 0; i < 100; i++) write();
}

test("a draining connection sends two GOAWAY frames, completes its streams, then closes", async () => {
  const { streams, serve } = keeper();
  await using connection = await openEngine({ serve });
  connection.send(begun(1));
  await expect.poll(() => streams.length).toBe(1);
  // A second drain has no effect.
  for (const one of [...connection.engine.connections, ...connection.engine.connections]) one.drain();
  expect(lastOf(await nextOf(connection, frameType.goAway))).toBe(2 ** 31 - 1);
  const ping = await nextOf(connection, frameType.ping);

  // This stream crosses the first GOAWAY, so it is served.
  connection.send(whole(3), frame(frameType.ping, ack, 0, ping?.payload));
  expect(lastOf(await nextOf(connection, frameType.goAway))).toBe(3);
  // This stream is above the last one, so the server ignores it, and the client will retry it elsewhere.
  connection.send(begun(5), dataFrame(5, Buffer.from("x")), frame(frameType.resetStream, 0, 5, Buffer.alloc(4)));
  connection.send(dataFrame(1, Buffer.from("x"), endStream));
  await expect.poll(() => streams.every(({ remoteEnded }) => remoteEnded)).toBe(true);
  expect(streams.map(({ id }) => id)).toStrictEqual([1, 3]);
  for (const stream of streams) answer(stream);
  expect([await connection.readEnd(1), await connection.readEnd(3)]).toStrictEqual([answered, answered]);
  expect(await connection.readFrame()).toBeUndefined();
});

test("a draining connection closes immediately if it has no open streams", async () => {
  await using connection = await openEngine();
  connection.send(whole(1));
  expect(await connection.readEnd(1)).toStrictEqual(answered);
  for (const one of connection.engine.connections) one.drain();
  connection.send(frame(frameType.ping, ack, 0, (await nextOf(connection, frameType.ping))?.payload));
  expect([lastOf(await nextOf(connection, frameType.goAway)), await connection.readFrame()]).toEqual([1, undefined]);
});

test("a draining connection closes if the client does not acknowledge the PING", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  await using connection = await openEngine();
  connection.send(whole(1));
  await connection.readEnd(1);
  for (const one of connection.engine.connections) one.drain();
  await nextOf(connection, frameType.ping);
  vi.advanceTimersByTime(2000);
  expect([lastOf(await nextOf(connection, frameType.goAway)), await connection.readFrame()]).toEqual([1, undefined]);
});

test("a draining connection sends GOAWAY for a protocol error after the final GOAWAY", async () => {
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

describe("an HTTP/2 client", () => {
  test("gets its responses after it has closed its side", async () => {
    const { streams, serve } = keeper();
    await using engine = await startEngine({ serve });
    using connection = await openFrames(engine.address);
    connection.send(whole(1), begun(3));
    connection.socket.end();
    // The second request's body will never be complete.
    expect(await connection.readEnd(3)).toStrictEqual(resetWith(ErrorCode.cancel));
    for (const stream of streams) answer(stream, Buffer.from("x"));
    expect([await connection.readEnd(1), await connection.readFrame()]).toStrictEqual([answered, undefined]);
    await expect.poll(() => engine.connections.size).toBe(0);
  });

  test.each([
    { name: "resets", end: (connection: FrameConnection) => connection.socket.resetAndDestroy() },
    { name: "closes", end: (connection: FrameConnection) => connection.socket.destroy() },
  ])("cancels its open calls when it $name the connection", async ({ end }) => {
    const codes: number[] = [];
    await using connection = await openEngine({
      serve: (stream) => {
        stream.receiver = receiving(stream, { onReset: (code) => codes.push(code) });
        stream.sendHeaders([], false);
        stream.sendData(Buffer.alloc(200_000));
      },
    });
    connection.send(begun(1, hold), begun(3, hold));
    await connection.readUntil(({ type }) => type === frameType.data);
    end(connection);
    await expect.poll(() => codes).toStrictEqual([ErrorCode.cancel, ErrorCode.cancel]);
    await expect.poll(() => connection.engine.connections.size).toBe(0);
  });

  const begunHead = frame(frameType.headers, 0, 1);
  test.each([
    ["sends no SETTINGS", { stallTimeoutMs: 50 }, [], ErrorCode.settingsTimeout, false],
    ["leaves a field block open", { stallTimeoutMs: 500 }, [begunHead], ErrorCode.protocolError, true],
  ])("that %s is disconnected", async (_name, limits, sent, want, settled) => {
    const clock = useFakeClock();
    await using engine = await startEngine({ limits });
    using connection = await openFrames(engine.address, { settled });
    connection.send(...sent);
    const goAway = await clock.passUntil(nextOf(connection, frameType.goAway), "GOAWAY");
    expect([goAway?.payload.readUInt32BE(4), await connection.readFrame()]).toEqual([want, undefined]);
  });

  test.each([
    { name: "sends nothing", sent: [] },
    { name: "sends only PINGs", sent: [alive] },
    { name: "sends only PINGs after a request", sent: [whole(1), alive] },
  ])("that $name gets GOAWAY after the idle timeout", async ({ sent }) => {
    using pair = quietPair();
    const frames = readFrames(pair.client);
    // Any number of PINGs, because here the idle timeout should close the connection.
    serveConnection(pair.server, { limits: { idleTimeoutMs: 50, pings: Number.POSITIVE_INFINITY } });
    // Without a kernel buffer, the bytes arrive before the first deadline check, even on a busy machine.
    pair.client.write(Buffer.concat([opening, ...sent.map(frameBytes)]));
    const frameTypes = new Set<number>();
    // The client sends a PING after each acknowledgement, so that it is never silent.
    const goAway = await frames.readUntil(({ type, flags }) => {
      if (type === frameType.ping && flags === ack) setImmediate(() => pair.client.write(frameBytes(alive)));
      frameTypes.add(type);
      return type === frameType.goAway;
    });
    expect(goAway?.payload.readUInt32BE(4)).toBe(ErrorCode.noError);
    expect(frameTypes.has(frameType.ping)).toBe(sent.includes(alive));
    expect(frameTypes.has(frameType.headers)).toBe(sent.length > 1);
    const drainPing = await frames.readUntil(({ type, flags }) => type === frameType.ping && flags === 0);
    pair.client.write(frameBytes(frame(frameType.ping, ack, 0, drainPing?.payload)));
    expect(await frames.readUntil(() => false)).toBeUndefined();
  });

  test("is not idle between consecutive streams", async () => {
    const clock = useFakeClock();
    const { streams, serve } = keeper();
    // Three streams take longer than the idle timeout, and almost no time passes between two streams.
    await using connection = await openEngine({ limits: { idleTimeoutMs: 600 }, serve });
    for (const streamId of [1, 3, 5]) {
      connection.send(whole(streamId));
      await expect.poll(() => streams.at(-1)?.id).toBe(streamId);
      await clock.pass(250);
      streams.at(-1)?.sendHeaders([statusBlock(200)], true);
      expect(await connection.readEnd(streamId)).toStrictEqual(answered);
    }
  });

  test("is disconnected if it does not acknowledge a PING", async () => {
    const clock = useFakeClock();
    const codes: number[] = [];
    const begins = Promise.withResolvers<void>();
    await using connection = await openEngine({
      limits: { idleTimeoutMs: 500, stallTimeoutMs: 500 },
      serve: (stream) => {
        stream.receiver = receiving(stream, { onReset: (code) => codes.push(code) });
        begins.resolve();
      },
    });
    connection.send(begun(1));
    await within(begins.promise, "the stream");
    const end = connection.readUntil(() => false);
    expect((await clock.passUntil(end, "the end of the connection"))?.type).toBeUndefined();
    await expect.poll(() => codes).toStrictEqual([ErrorCode.cancel]);
    expect(connection.engine.connections.size).toBe(0);
  });

  test("stays connected while it acknowledges PINGs", async () => {
    const clock = useFakeClock();
    await using patient = await openEngine({ limits: { idleTimeoutMs: 300, stallTimeoutMs: hour } });
    patient.send(begun(1));
    for (let pings = 0; pings < 2; pings++) {
      const ping = await clock.passUntil(nextOf(patient, frameType.ping), "PING");
      patient.send(frame(frameType.ping, ack, 0, ping?.payload));
    }
    patient.send(dataFrame(1, Buffer.alloc(0), endStream));
    expect(await patient.readEnd(1)).toStrictEqual(answered);
  });

  test("stays connected if a busy server reads its PING acknowledgement late", async () => {
    const clock = useFakeClock();
    const begins = Promise.withResolvers<void>();
    await using connection = await openEngine({
      limits: { idleTimeoutMs: 1000, stallTimeoutMs: 1000 },
      serve: (stream) => {
        stream.receiver = receiving(stream, { onEnd: () => answer(stream) });
        begins.resolve();
      },
    });
    connection.send(begun(1));
    await within(begins.promise, "the stream");
    await clock.pass(1000);
    const ping = await nextOf(connection, frameType.ping);
    // After this turn, the event loop reads before it checks deadlines, as after timers.
    await nextTurn();
    connection.send(frame(frameType.ping, ack, 0, ping?.payload));
    await clock.pass(2000);
    connection.send(dataFrame(1, Buffer.alloc(0), endStream));
    expect(await connection.readEnd(1)).toStrictEqual(answered);
  });

  test("gets a reset if it does not complete an awaited body in time", async () => {
    await using connection = await openEngine({
      limits: { requestTimeoutMs: 60 },
      serve: (stream) => {
        stream.receiver = receiving(stream, { isAwaited: stream.id === 3, onEnd: () => answer(stream) });
      },
    });
    connection.send(begun(1), begun(3));
    expect(await connection.readEnd(3)).toStrictEqual(resetWith(ErrorCode.cancel));
    // A message stream has no request timeout.
    connection.send(dataFrame(1, Buffer.from("x"), endStream));
    expect(await connection.readEnd(1)).toStrictEqual(answered);
  });

  test("gets a reset if its body does not end within the linger time", async () => {
    await using engine = await startEngine({ limits: { ...farOff, lingerMs: 20 }, serve: (stream) => answer(stream) });
    using connection = await openFrames(engine.address);
    for (const streamId of [1, 3]) {
      connection.send(begun(streamId));
      const reset = await nextOf(connection, frameType.resetStream);
      expect([reset?.streamId, reset?.payload.readUInt32BE(0)]).toStrictEqual([streamId, ErrorCode.noError]);
    }
  });

  test.each([
    { name: "the stream is reset", everyMs: 13, last: frameType.resetStream },
    { name: "the connection is closed", everyMs: 3_600_000, last: frameType.headers },
  ])("has a linger timer until $name if its body is incomplete", async ({ everyMs, last }) => {
    using started = vi.spyOn(globalThis, "setInterval");
    using cleared = vi.spyOn(globalThis, "clearInterval");
    await using connection = await openEngine({ limits: { lingerMs: 4 * everyMs }, serve: (stream) => answer(stream) });
    connection.send(begun(1));
    await nextOf(connection, last);
    if (last === frameType.headers) connection.socket.destroy();
    const clocks = started.mock.results.filter((_, i) => started.mock.calls[i]?.[1] === everyMs);
    expect(clocks).toHaveLength(1);
    // Otherwise, idle and closed connections would run the timer forever.
    const stopped = last === frameType.headers ? started.mock.results : clocks;
    const isCleared = (timer: unknown): boolean => cleared.mock.calls.some(([other]) => other === timer);
    await expect.poll(() => stopped.every(({ value }) => isCleared(value))).toBe(true);
  });

  test("gets a reset if it reads nothing for the blocked timeout", async () => {
    await using connection = await openEngine({ limits: { blockedTimeoutMs: 60, stallTimeoutMs: 500 } });
    connection.send(begun(1), ...Array.from({ length: 5 }, () => dataFrame(1, Buffer.alloc(16_000))));
    connection.send(dataFrame(1, Buffer.alloc(0), endStream));
    expect(await connection.readEnd(1)).toStrictEqual({ ...resetWith(ErrorCode.cancel), httpStatus: 200 });
  });

  test.each([
    { name: "PINGs", sent: alive, limits: { pings: 1e9 } },
    { name: "requests", sent: whole(1), limits: {} },
  ])("is disconnected if it sends $name without reading", async ({ sent, limits }) => {
    const budget = new BacklogBudget(2 ** 30);
    let heldBytes = 0;
    const options = { budget, limits: { ...limits, blockedTimeoutMs: 100 } };
    await using connection = await openEngine({ ...options, serve: (stream) => stream.sendHeaders(kilobyte, true) });
    connection.socket.pause();
    const closed = new Promise((resolve) => connection.socket.once("close", resolve));
    connection.socket.on("error", () => {});
    for (let streamId = 1; connection.engine.connections.size > 0; await nextTurn()) {
      heldBytes = Math.max(heldBytes, budget.bytes);
      // In addition to the bytes that the kernel buffers.
      if (connection.socket.writableLength > 1_000_000) continue;
      const ids = Array.from({ length: 2000 }, () => (streamId += 2));
      connection.send(...ids.map((id) => ({ ...sent, streamId: sent.streamId && id })));
    }
    connection.socket.resume();
    await within(closed, "the end of the connection");
    expect(heldBytes).toBeGreaterThan(0);
    // Plus the output for the last chunk that was read.
    expect(heldBytes).toBeLessThan(2_000_000);
    expect(budget.bytes).toBe(0);
  });

  test("is disconnected after a protocol error even if it does not close its side", async () => {
    using pair = quietPair();
    let closed = false;
    const connection = serveConnection(pair.server, { limits: { lingerMs: 300 } }, () => (closed = true));
    pair.client.write(Buffer.concat([opening, frameBytes(frame(frameType.ping, 0, 1, Buffer.alloc(8)))]));
    await within(once(pair.client.resume(), "end"), "the end of what is sent");
    connection.drain();
    await expect.poll(() => closed).toBe(true);
  });

  test("is disconnected when its unread backlog exceeds the budget", async () => {
    using pair = quietPair();
    let closed = false;
    const options = { limits: farOff, budget: new BacklogBudget(100_000) };
    const serveOptions = { ...options, serve: (stream: Http2Stream) => stream.sendHeaders(kilobyte, true) };
    serveConnection(pair.server, serveOptions, () => (closed = true));
    pair.client.write(opening);
    for (let i = 0; i < 300; i++) pair.client.write(frameBytes(whole(2 * i + 1)));
    await expect.poll(() => closed).toBe(true);
  });

  test("has its queued requests served when it starts to read", async () => {
    using pair = quietPair();
    let served = 0;
    const serve = (stream: Http2Stream): void => {
      served += 1;
      stream.sendHeaders(kilobyte, true);
    };
    serveConnection(pair.server, { serve });
    const calls = 2000;
    pair.client.write(opening);
    for (let i = 0; i < calls; i++) pair.client.write(frameBytes(whole(2 * i + 1)));
    for (let turns = 0; turns < calls; turns++) await nextTurn();
    expect(served).toBeGreaterThan(defaultHttp2Limits.unreadBytes / 1000 / 2);
    expect(served).toBeLessThan(calls * 0.75);
    pair.client.resume();
    await expect.poll(() => served).toBe(calls);
  });

  test("stays connected while it reads slowly and sends nothing", async () => {
    const clock = useFakeClock();
    using pair = quietPair();
    let closed = false;
    const limits = { idleTimeoutMs: 100, stallTimeoutMs: 400 };
    serveConnection(pair.server, { serve: sendEndlessly, limits }, () => (closed = true));
    const most = 2 ** 31 - 1;
    const frames = [settingFrame(4, most), windowUpdateFrame(0, most - 65_535), begun(1)];
    pair.client.write(Buffer.concat([opening, ...frames.map(frameBytes)]));
    for (let ms = 0; ms < 800; ms += 10) {
      pair.client.read();
      await clock.pass(10);
    }
    expect(closed).toBe(false);
  });
});

test("a connection is not idle if a stream ends between two checks", async () => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "performance"] });
  onTestFinished(() => void vi.useRealTimers());
  await using connection = await openEngine({ limits: { idleTimeoutMs: 1000 } });
  for (const streamId of [1, 3, 5, 7]) {
    connection.send(whole(streamId));
    expect(await connection.readEnd(streamId)).toStrictEqual(answered);
    vi.advanceTimersByTime(250);
    await nextTurn();
  }
  connection.send(pingFrame);
  const next = await connection.readUntil(({ type }) => type === frameType.ping || type === frameType.goAway);
  expect(next?.type).toBe(frameType.ping);
});
