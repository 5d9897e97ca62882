import { setImmediate as nextTurn } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { BacklogBudget } from "../../../src/engine/backlog.ts";
import { defaultHttp2Limits } from "../../../src/engine/http2/http2-limits.ts";
import type { Http2Stream } from "../../../src/engine/http2/http2-stream.ts";
import { answer, openEngine, receiving, startEngine, statusBlock } from "../../../../testing/src/http2/http2-engine.ts";
import { type FrameConnection, frameFlag, frameType, openFrames, pingFrame, resetFrame } from "@protoport/testing/http";
// oxfmt-ignore
import { answered, begun, settingFrame, whole, windowUpdateFrame
} from "../../../../testing/src/http2/http2-requests.ts";

const { blockedTimeoutMs } = defaultHttp2Limits;

describe("SendFlow", () => {
  test("keeps data queued until a negative window is positive again (§6.9.2)", async () => {
    await using connection = await openEngine({ serve: (stream) => answer(stream, Buffer.from("abcd")) });
    connection.send(settingFrame(4, 2), whole(1));
    await connection.readUntil(({ type }) => type === frameType.data);
    // The window changes from 0 to -2, back to 0, which allows nothing, and then to 1.
    connection.send(settingFrame(4, 0), windowUpdateFrame(1, 2), pingFrame);
    const next = await connection.readUntil(({ type }) => type === frameType.data || type === frameType.ping);
    expect(next?.type).toBe(frameType.ping);
    connection.send(windowUpdateFrame(1, 1));
    const data = await connection.readUntil(({ type }) => type === frameType.data);
    expect(data).toMatchObject({ flags: 0, payload: Buffer.from("c") });
    connection.send(windowUpdateFrame(1, 1));
    expect(await connection.readEnd(1)).toMatchObject({ kind: "responded" });
  });

  test("sends queued data when SETTINGS enlarges the stream window (§6.9.2)", async () => {
    await using engine = await startEngine({ serve: (stream) => answer(stream, Buffer.from("abcd")) });
    using connection = await openFrames(engine.address);
    // The change of the connection window visits the stream, whose own window is still 0.
    connection.send(settingFrame(4, 0), whole(1), windowUpdateFrame(0, 1), settingFrame(4, 4), pingFrame);
    const next = await connection.readUntil(({ type }) => type === frameType.data || type === frameType.ping);
    expect(next).toMatchObject({ type: frameType.data, payload: Buffer.from("abcd") });
  });

  test("sends one DATA frame per WINDOW_UPDATE while data is queued", async () => {
    await using connection = await openEngine({ serve: (stream) => answer(stream, Buffer.from("abc")) });
    connection.send(settingFrame(4, 0), whole(1), whole(3));
    connection.send(windowUpdateFrame(1, 1), windowUpdateFrame(3, 2), pingFrame);
    const sent: string[] = [];
    await connection.readUntil(({ type, streamId, payload }) => {
      if (type === frameType.data) sent.push(`${streamId}:${payload.toString()}`);
      return type === frameType.ping;
    });
    expect(sent).toEqual(["1:a", "3:ab"]);
  });

  test("accepts window changes for streams without queued data", async () => {
    await using connection = await openEngine({ serve: (stream) => stream.sendHeaders([statusBlock(200)], false) });
    await connection.settle(whole(1), settingFrame(4, 100_000));
  });

  test("handles WINDOW_UPDATE in constant time for any number of queued streams", async () => {
    await using connection = await openEngine();
    await connection.settle();
    const [{ sendFlow } = expect.fail("no connection")] = connection.engine.connections;
    let visits = 0;
    const streams = Array.from({ length: 250 }, () => ({
      window: 0,
      get sendWindow() {
        visits++;
        return this.window;
      },
      set sendWindow(bytes) {
        this.window = bytes;
      },
      queuedBytes: 1000,
      sendNext() {
        sendFlow.release(this, sendFlow.take(this, 1), false);
      },
      reset: () => {},
    }));
    for (const stream of streams) sendFlow.enqueue(stream, 1000);
    visits = 0;
    for (const stream of streams) sendFlow.growStream(stream, 1);
    expect(visits).toBeLessThan(10 * streams.length);
    expect(sendFlow.queuedBytes).toBe(999 * streams.length);
  });

  test("sends one byte if the connection window grows by one byte", async () => {
    await using connection = await openEngine({ serve: (stream) => answer(stream, Buffer.alloc(65_537)) });
    connection.send(settingFrame(4, 100_000), whole(1));
    for (let bytes = 0; bytes < 65_535;) {
      const data = await connection.readUntil(({ type }) => type === frameType.data);
      // The largest frame that every peer accepts (§4.2).
      expect(data?.payload.byteLength).toBeLessThanOrEqual(16_384);
      bytes += data?.payload.byteLength ?? Infinity;
    }
    connection.send(windowUpdateFrame(0, 1), pingFrame);
    const next = await connection.readUntil(({ type }) => type === frameType.data || type === frameType.ping);
    expect(next).toMatchObject({ type: frameType.data, flags: 0, payload: Buffer.alloc(1) });
  });

  test("sends pieces of a body in order", async () => {
    const streams: Http2Stream[] = [];
    await using connection = await openEngine({
      serve: (stream) => {
        streams.push(stream);
        stream.receiver = receiving(stream, { onWritable: () => streams[1]?.end(Buffer.from("b"), undefined) });
        stream.sendHeaders([statusBlock(200)], false);
        stream.sendData(Buffer.from("a"));
      },
    });
    connection.send(settingFrame(4, 0), begun(1), begun(3), settingFrame(4, 100));
    const sent: string[] = [];
    await connection.readUntil(({ type, streamId, flags, payload }) => {
      if (type === frameType.data && streamId === 3) sent.push(payload.toString());
      return streamId === 3 && flags === frameFlag.endStream;
    });
    expect(sent.join("")).toBe("ab");
  });

  test.each<[name: string, end: (connection: FrameConnection, budget: BacklogBudget) => Promise<void>]>([
    ["sent", (connection) => connection.settle(windowUpdateFrame(1, 1000), windowUpdateFrame(3, 1000))],
    ["reset", (connection) => connection.settle(resetFrame(1, 8), resetFrame(3, 8))],
    [
      "lost with its connection",
      async ({ socket }, budget) => {
        socket.destroy();
        await expect.poll(() => budget.bytes).toBe(0);
      },
    ],
  ])("counts queued data until it is %s", async (_name, end) => {
    const budget = new BacklogBudget(100_000);
    await using connection = await openEngine({ budget, serve: (stream) => answer(stream, Buffer.alloc(1000)) });
    await connection.settle(settingFrame(4, 0), whole(1), whole(3));
    expect(budget.bytes).toBe(2000);
    await end(connection, budget);
    expect(budget.bytes).toBe(0);
  });
});

test("long responses do not block short responses", async () => {
  await using connection = await openEngine({
    serve: (stream) => answer(stream, Buffer.alloc(stream.id === 1 ? 1_000_000 : 20_000)),
  });
  const shorts = [3, 5, 7, 9];
  connection.send(settingFrame(4, 2 ** 31 - 1), ...[1, ...shorts].map(whole));
  const sentBytes = new Map<number, number>();
  const completed: number[] = [];
  while (completed.length < shorts.length) {
    const data = await connection.readUntil(({ type }) => type === frameType.data);
    if (data === undefined) throw new Error("the connection has closed");
    sentBytes.set(data.streamId, (sentBytes.get(data.streamId) ?? 0) + data.payload.byteLength);
    if (data.flags === frameFlag.endStream) completed.push(data.streamId);
    // Less than one frame at a time.
    connection.send(windowUpdateFrame(0, data.payload.byteLength));
  }
  expect(completed).toStrictEqual(shorts);
  // Stream 1 sends its first window, and then takes at most as many turns as the other streams.
  expect(sentBytes.get(1)).toBeLessThan(65_535 + shorts.length * 2 * 16_384);
});

test.each([
  { name: "allows data that fills the stream window", streamWindow: 5, sizes: [5, 1], sent: [true, false] },
  { name: "refuses data over the stream window", streamWindow: 5, sizes: [6, 4], sent: [false, true] },
  { name: "refuses data over the frame size", streamWindow: 65_535, sizes: [16_385, 16_384], sent: [false, true] },
  {
    name: "refuses data over the connection window",
    streamWindow: 100_000,
    sizes: [16_384, 16_384, 16_384, 16_384, 16_383, 1],
    sent: [true, true, true, false, true, false],
  },
  { name: "refuses data while the socket is full", streamWindow: 5, sizes: [1], sent: [false], congested: true },
])("SendFlow.takeAll $name", async ({ streamWindow, sizes, sent, congested = false }) => {
  await using engine = await startEngine();
  using connection = await openFrames(engine.address);
  await connection.settle();
  const [{ output, sendFlow } = expect.fail("no connection")] = engine.connections;
  output.congested = congested;
  const stream = { sendWindow: streamWindow, queuedBytes: 0, sendNext: () => {}, reset: () => {} };
  expect(sizes.map((bytes) => sendFlow.takeAll(stream, bytes))).toEqual(sent);
  const taken = sizes.filter((_, at) => sent[at]).reduce((sum, bytes) => sum + bytes, 0);
  expect(stream.sendWindow).toBe(streamWindow - taken);
});

test.each([
  ["no stream if the windows allow the queued bytes", 65_535, 65_535, 0],
  ["a stream with more queued bytes than its window", 5, 6, 1],
  ["a stream with more queued bytes than the connection window", 65_536, 65_536, 1],
])("SendFlow.finish returns %s", async (_name, sendWindow, queuedBytes, lost) => {
  await using engine = await startEngine();
  using connection = await openFrames(engine.address);
  await connection.settle();
  const [{ sendFlow } = expect.fail("no connection")] = engine.connections;
  sendFlow.enqueue({ sendWindow, queuedBytes, sendNext: () => {}, reset: () => {} }, queuedBytes);
  expect(sendFlow.finish()).toHaveLength(lost);
});

test.each([
  { name: "stalled if nothing was read for the blocked timeout", afterMs: blockedTimeoutMs, stalled: 1 },
  { name: "not stalled before the blocked timeout", afterMs: blockedTimeoutMs - 5000, stalled: 0 },
])("a response is $name", async ({ afterMs, stalled }) => {
  await using connection = await openEngine({ serve: (stream) => answer(stream, Buffer.alloc(1000)) });
  await connection.settle(settingFrame(4, 0), whole(1));
  const [first] = connection.engine.connections;
  expect(first?.sendFlow.stalled(performance.now() + afterMs)).toHaveLength(stalled);
});

test("a response is not stalled while the client reads slowly", async () => {
  await using connection = await openEngine({
    serve: (stream) => {
      stream.receiver = receiving(stream);
      answer(stream, Buffer.alloc(1000));
    },
  });
  await connection.settle(settingFrame(4, 0), whole(1));
  const waitingAtMs = performance.now();
  while (performance.now() < waitingAtMs + 5) await nextTurn();
  connection.send(windowUpdateFrame(1, 1), pingFrame);
  await connection.readUntil(({ type, flags }) => type === frameType.ping && flags === frameFlag.ack);
  const [first] = connection.engine.connections;
  expect(first?.sendFlow.stalled(waitingAtMs + blockedTimeoutMs + 4)).toStrictEqual([]);
  connection.send(windowUpdateFrame(1, 999), whole(3), windowUpdateFrame(3, 1000));
  expect(await connection.readEnd(3)).toStrictEqual(answered);
});
