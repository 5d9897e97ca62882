import { setImmediate as nextTurn } from "node:timers/promises";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { encodeStatus } from "../../../src/engine/http2/hpack/encoder.ts";
import { FloodGuard } from "../../../src/engine/http2/flood-guard.ts";
import { ErrorCode } from "../../../src/http/exchange/index.ts";
import { defaultHttp2Limits, type Http2Limits } from "../../../src/engine/http2/http2-limits.ts";
import { openEngine, receiving, startEngine } from "../../../../testing/src/http2/http2-engine.ts";
// oxfmt-ignore
import { clientPreface, dataFrame, frame, type Frame, frameBytes, type FrameConnection, frameFlag, frameType,
  headersFrame, openFrames, pingFrame, resetFrame } from "@protoport/testing/http";
// oxfmt-ignore
import { answered, begun, echoUnlessHeld, getBlock, goAwayWith, hold, postHeader, resetWith, settingFrame, uint32,
  whole, windowUpdateFrame } from "../../../../testing/src/http2/http2-requests.ts";

/** Returns the frames in wave `i`, from 0, which may open stream 3 + 2i. Stream 1 is always open. */
type Wave = (i: number) => readonly Frame[];

/** A flood, and how many waves pass. */
type Flood = [name: string, limits: Partial<Http2Limits>, wave: Wave, allowed: number];
const pingAck = frame(frameType.ping, frameFlag.ack, 0, Buffer.alloc(8));
const priorityFrame = frame(frameType.priority, 0, 1, Buffer.concat([uint32(0), Buffer.from([16])]));
const emptyData = dataFrame(1, Buffer.alloc(0));
const malformed = (streamId: number): Frame => begun(streamId, ["Upper", "case"]);

// oxfmt-ignore
const floods: readonly Flood[] = [
  ["streams that are opened and reset (CVE-2023-44487)", { resets: 5 },
    (i) => [begun(3 + 2 * i), resetFrame(3 + 2 * i, 8)], 5],
  [
    "resets of more than half of all streams",
    { resets: 5 },
    // 19 streams, and stream 1, which is always open, are not reset.
    (i) => (i < 19 ? [whole(3 + 2 * i)] : [begun(3 + 2 * i), resetFrame(3 + 2 * i, 8)]),
    19 + 20,
  ],
  ["malformed streams", { resets: 5 }, (i) => [malformed(3 + 2 * i)], 5],
  ["streams that cause a reset by the server", { resets: 5 },
    (i) => [begun(3 + 2 * i), windowUpdateFrame(3 + 2 * i, 0)], 5],
  ["streams above concurrentStreams", { resets: 5, concurrentStreams: 1 }, (i) => [whole(3 + 2 * i)], 5],
  ["SETTINGS", { settings: 10 }, () => [settingFrame(4, 100)], 8],
  ["acknowledgements of SETTINGS", { settings: 10 }, () => [frame(frameType.settings, frameFlag.ack, 0)], 8],
  ["PING", { pings: 5 }, () => [pingFrame], 5],
  ["acknowledgements of PING", { pings: 5 }, () => [pingAck], 5],
  // Each stream allows two frames, and one stream is open.
  ["empty DATA", { emptyData: 5 }, () => [emptyData], 7],
  ["DATA that contains only padding", { emptyData: 5 },
    () => [frame(frameType.data, frameFlag.padded, 1, Buffer.from([1, 0]))], 7],
  ["three empty DATA frames for each frame with bytes", { emptyData: 5 },
    () => [dataFrame(1, Buffer.from("x")), emptyData, emptyData, emptyData], 7],
  ["PRIORITY", { ignoredFrames: 5 }, () => [priorityFrame], 7],
  ["unknown frames", { ignoredFrames: 5 }, () => [frame(0x55, 0, 0)], 7],
  // Two streams allow four frames.
  ["DATA for a stream that the server has reset", { ignoredFrames: 5 },
    (i) => [i === 0 ? malformed(3) : dataFrame(3, Buffer.from("x"))], 1 + 9],
  ["resets of a closed stream", { ignoredFrames: 5 }, (i) => [i === 0 ? whole(3) : resetFrame(3, 8)], 1 + 9],
  ["GOAWAY", { ignoredFrames: 5 }, () => [frame(frameType.goAway, 0, 0, Buffer.alloc(8))], 7],
  ["WINDOW_UPDATE for the connection", { windowUpdates: 5 }, () => [windowUpdateFrame(0, 1)], 7],
  ["WINDOW_UPDATE for a stream", { windowUpdates: 5 }, () => [windowUpdateFrame(1, 1)], 7],
  ["three WINDOW_UPDATEs for each stream", { windowUpdates: 5 },
    (i) => [whole(3 + 2 * i), windowUpdateFrame(3 + 2 * i, 1), windowUpdateFrame(0, 1), windowUpdateFrame(0, 1)], 7],
];

function waves(wave: Wave, from: number, to: number): Frame[] {
  return Array.from({ length: to - from }, (_, i) => wave(from + i)).flat();
}

describe("flood limits", () => {
  test.each(floods)("allow %s up to the limit, then close the connection", async (_, limits, wave, allowed) => {
    const serve = echoUnlessHeld;
    await using connection = await openEngine({ serve, limits });
    connection.send(begun(1, hold), ...waves(wave, 0, allowed));
    // Checked with a frame whose type is not counted.
    const probe = limits.pings === undefined ? pingFrame : frame(frameType.settings, 0, 0);
    expect(await isAlive(connection, probe)).toBe(true);
    connection.send(...waves(wave, allowed, allowed + 1));
    expect(await connection.readEnd(1)).toStrictEqual(goAwayWith(ErrorCode.enhanceYourCalm));
  });

  test.each([
    ["allow CONTINUATION frames up to the limit", 3, answered],
    ["close the connection after more CONTINUATION frames (CVE-2024-27316)", 4, goAwayWith(ErrorCode.enhanceYourCalm)],
  ])("%s", async (_name, continuations, want) => {
    await using connection = await openEngine({ limits: { continuations: 3 } });
    connection.send(frame(frameType.headers, frameFlag.endStream, 1, getBlock));
    for (let i = 1; i < continuations; i++) connection.send(frame(frameType.continuation, 0, 1));
    connection.send(frame(frameType.continuation, frameFlag.endHeaders, 1));
    expect(await connection.readEnd(1)).toStrictEqual(want);
  });

  test("accept a field block at the limit, and reject a longer block", async () => {
    const headerBlockBytes = getBlock.byteLength;
    for (const [more, want] of [
      [0, answered],
      [1, goAwayWith(ErrorCode.enhanceYourCalm)],
    ] as const) {
      await using connection = await openEngine({ limits: { headerBlockBytes } });
      // The additional octet is a table size update without effect.
      const block = Buffer.concat([Buffer.alloc(more, 0x20), getBlock]);
      const rest = frame(frameType.continuation, frameFlag.endHeaders, 1, block.subarray(9));
      connection.send(frame(frameType.headers, frameFlag.endStream, 1, block.subarray(0, 9)), rest);
      expect(await connection.readEnd(1)).toStrictEqual(want);
    }
  });

  test.each<[name: string, limits: Partial<Http2Limits>, replies: readonly Frame[]]>([
    ["window updates in reply to DATA", { windowUpdates: 1 }, [windowUpdateFrame(0, 1), windowUpdateFrame(1, 1)]],
    ["PINGs in reply to DATA", { pings: 1 }, [pingFrame]],
  ])("do not count %s as a flood", async (_name, limits, replies) => {
    const body = Buffer.alloc(50);
    await using connection = await openEngine({
      limits,
      serve: (stream) => {
        stream.receiver = receiving(stream);
        stream.sendHeaders([], false);
        for (const octet of body) stream.sendData(Buffer.from([octet]));
      },
    });
    connection.send(begun(1));
    for (let at = 0; at < body.byteLength; at++) await connection.readUntil(({ type }) => type === frameType.data);
    connection.send(...Array.from({ length: 50 }, () => replies).flat());
    expect(await isAlive(connection, frame(frameType.settings, 0, 0))).toBe(true);
  });

  test("do not count PINGs in reply to responses without DATA", async () => {
    await using connection = await openEngine({ limits: { pings: 0 } });
    for (let streamId = 1; streamId < 50; streamId += 2) {
      connection.send(whole(streamId));
      expect(await connection.readEnd(streamId)).toStrictEqual(answered);
      expect(await isAlive(connection, pingFrame)).toBe(true);
    }
  });

  test("count refused streams only after the client has acknowledged the limit (§5.1.2)", async () => {
    const limits = { resets: 0, concurrentStreams: 1 };
    await using engine = await startEngine({ serve: echoUnlessHeld, limits });
    using connection = await openFrames(engine.address, { settled: false });
    connection.socket.write(clientPreface);
    connection.send(frame(frameType.settings, 0, 0), begun(1, hold), whole(3), whole(5));
    expect(await isAlive(connection, pingFrame)).toBe(true);
  });

  test.each([
    { name: "an interim response", status: "continue", allowed: 2 },
    { name: "the response head", status: "final", allowed: 5 },
  ])("allow resets after $name up to a limit", async ({ status, allowed }) => {
    await using connection = await openEngine({
      limits: { resets: 2, resetsAfterHead: 5, resetShare: 0 },
      serve: (stream) => {
        stream.receiver = receiving(stream);
        if (status === "continue") stream.startBody();
        else stream.sendHeaders([encodeStatus(200)], false);
      },
    });
    const leave = (streamId: number): void => {
      connection.send(begun(streamId, ["expect", "100-continue"]), resetFrame(streamId, 8));
    };
    connection.send(begun(1, hold));
    for (let left = 0; left < allowed; left++) leave(3 + 2 * left);
    expect(await isAlive(connection, pingFrame)).toBe(true);
    leave(3 + 2 * allowed);
    expect(await connection.readUntil(({ type }) => type === frameType.goAway)).toBeDefined();
  });

  test("do not count late resets", async () => {
    await using connection = await openEngine({ serve: echoUnlessHeld, limits: { resets: 0, rapidResetMs: 0 } });
    for (let streamId = 1; streamId < 50; streamId += 2) connection.send(begun(streamId), resetFrame(streamId, 8));
    expect(await isAlive(connection, pingFrame)).toBe(true);
  });

  test("count a DATA frame after a reset only once", async () => {
    await using connection = await openEngine({ serve: echoUnlessHeld, limits: { ignoredFrames: 5 } });
    connection.send(headersFrame(1, postHeader(["connection", "close"])));
    expect(await connection.readEnd(1)).toStrictEqual(resetWith(ErrorCode.protocolError));
    const late = frameBytes(dataFrame(1, Buffer.alloc(16_384)));
    const parts = [0, 5_000, 10_000, 15_000].map((at) => late.subarray(at, at + 5_000));
    for (const part of [...parts, ...parts, ...parts]) {
      connection.socket.write(part);
      await nextTurn();
    }
    expect(await isAlive(connection, pingFrame)).toBe(true);
  });
});

describe("the flood counters", () => {
  test("restart in each interval", async () => {
    vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "performance"] });
    onTestFinished(() => void vi.useRealTimers());
    await using connection = await openEngine({ limits: { pings: 5, intervalMs: 10 } });
    for (let wave = 0; wave < 3; wave++) {
      for (let i = 0; i < 5; i++) expect(await isAlive(connection, pingFrame)).toBe(true);
      vi.advanceTimersByTime(10);
      await nextTurn();
    }
  });

  test("keep unused credit for the next interval", () => {
    const guard = new FloodGuard({ ...defaultHttp2Limits, windowUpdates: 1 }, { headerBlocks: 1, dataFrames: 1 });
    guard.restart();
    for (let i = 0; i < 3; i++) guard.count("windowUpdates");
    expect(() => guard.count("windowUpdates")).toThrow("too many windowUpdates");
    guard.restart();
    expect(() => guard.count("windowUpdates")).not.toThrow();
  });

  test("keep unused credit up to a limit", () => {
    const sent = { headerBlocks: 100_000, dataFrames: 100_000 };
    const guard = new FloodGuard({ ...defaultHttp2Limits, windowUpdates: 1 }, sent);
    for (let i = 0; i < 65_536 + 1; i++) guard.count("windowUpdates");
    expect(() => guard.count("windowUpdates")).toThrow("too many windowUpdates");
  });

  test.each(["resets", "resetsAfterHead"] as const)("compare %s with the streams of the same interval", (what) => {
    const guard = new FloodGuard({ ...defaultHttp2Limits, [what]: 1 }, { headerBlocks: 0, dataFrames: 0 });
    guard.openedStreams = 10;
    for (let i = 0; i < 5; i++) guard.count(what);
    guard.restart();
    guard.count(what);
    expect(() => guard.count(what)).toThrow(`too many ${what}`);
  });
});

/** Waits until everything that was sent was processed. @returns whether the connection is still open */
async function isAlive(connection: FrameConnection, probe: Frame): Promise<boolean> {
  connection.send(probe);
  const isReply = ({ type, flags }: Frame): boolean => type === probe.type && flags === frameFlag.ack;
  const reply = await connection.readUntil((one) => one.type === frameType.goAway || isReply(one));
  return reply !== undefined && isReply(reply);
}
