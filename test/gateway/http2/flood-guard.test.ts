import { setImmediate as nextTurn } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { FloodGuard } from "../../../src/gateway/http2/flood-guard.ts";
import { defaultHttp2Limits, ErrorCode, type Http2Limits } from "../../../src/gateway/http2/index.ts";
import { receiving, startEngine } from "../../support/http2-engine.ts";
import {
  dataFrame,
  frame,
  type Frame,
  frameFlag,
  frameType,
  type FrameConnection,
  openFrames,
  resetFrame,
} from "../../support/http2-frames.ts";
import {
  answered,
  begun,
  echoUnlessHeld,
  getBlock,
  goAwayWith,
  hold,
  settingFrame,
  uint32,
  whole,
  windowUpdateFrame,
} from "../../support/http2-requests.ts";

interface Flood {
  readonly name: string;
  readonly limits: Partial<Http2Limits>;
  /** What is sent for each `i` from 0 on; the streams it opens are 3 + 2i. Stream 1 is open all the time. */
  readonly wave: (i: number) => readonly Frame[];
  /** How many waves are let pass. */
  readonly passing: number;
}

const ping = frame(frameType.ping, 0, 0, Buffer.alloc(8));
const pingAck = frame(frameType.ping, frameFlag.ack, 0, Buffer.alloc(8));
const priorityFrame = frame(frameType.priority, 0, 1, Buffer.concat([uint32(0), Buffer.from([16])]));
const malformed = (streamId: number): Frame => begun(streamId, ["Upper", "case"]);

const floods: readonly Flood[] = [
  {
    name: "streams that are opened and reset (CVE-2023-44487)",
    limits: { resets: 5 },
    wave: (i) => [begun(3 + 2 * i), resetFrame(3 + 2 * i, 8)],
    passing: 5,
  },
  { name: "streams that are malformed", limits: { resets: 5 }, wave: (i) => [malformed(3 + 2 * i)], passing: 5 },
  {
    name: "streams that make us reset them",
    limits: { resets: 5 },
    wave: (i) => [begun(3 + 2 * i), windowUpdateFrame(3 + 2 * i, 0)],
    passing: 5,
  },
  {
    name: "streams above the limit",
    limits: { resets: 5, concurrentStreams: 1 },
    wave: (i) => [whole(3 + 2 * i)],
    passing: 5,
  },
  { name: "SETTINGS", limits: { settings: 10 }, wave: () => [settingFrame(4, 100)], passing: 8 },
  {
    name: "acknowledgements of SETTINGS",
    limits: { settings: 10 },
    wave: () => [frame(frameType.settings, frameFlag.ack, 0)],
    passing: 8,
  },
  { name: "PING", limits: { pings: 5 }, wave: () => [ping], passing: 5 },
  { name: "acknowledgements of PING", limits: { pings: 5 }, wave: () => [pingAck], passing: 5 },
  { name: "empty DATA", limits: { emptyData: 5 }, wave: () => [dataFrame(1, Buffer.alloc(0))], passing: 5 },
  {
    name: "DATA of nothing but padding",
    limits: { emptyData: 5 },
    wave: () => [frame(frameType.data, frameFlag.padded, 1, Buffer.from([1, 0]))],
    passing: 5,
  },
  // Each stream makes room for two; there is one.
  { name: "PRIORITY", limits: { ignoredFrames: 5 }, wave: () => [priorityFrame], passing: 7 },
  { name: "frames that nobody knows", limits: { ignoredFrames: 5 }, wave: () => [frame(0x55, 0, 0)], passing: 7 },
  {
    name: "GOAWAY",
    limits: { ignoredFrames: 5 },
    wave: () => [frame(frameType.goAway, 0, 0, Buffer.alloc(8))],
    passing: 7,
  },
  {
    name: "WINDOW_UPDATE for the connection",
    limits: { windowUpdates: 5 },
    wave: () => [windowUpdateFrame(0, 1)],
    passing: 5,
  },
  {
    name: "WINDOW_UPDATE for a stream",
    limits: { windowUpdates: 5 },
    wave: () => [windowUpdateFrame(1, 1)],
    passing: 5,
  },
];

function waves({ wave }: Flood, from: number, to: number): Frame[] {
  return Array.from({ length: to - from }, (_, i) => wave(from + i)).flat();
}

describe("a flood of", () => {
  test.each(floods)("$name ends the connection, and not before it is one", async (flood) => {
    const { limits, passing } = flood;
    const serve = echoUnlessHeld;
    await using engine = await startEngine({ serve, limits });
    using connection = await openFrames(engine.address);
    connection.send(begun(1, hold), ...waves(flood, 0, passing));
    // Asked by a frame that is not the one that is counted.
    expect(await isAlive(connection, limits.pings === undefined ? ping : frame(frameType.settings, 0, 0))).toBe(true);
    connection.send(...waves(flood, passing, passing + 1));
    expect(await connection.readEnd(1)).toStrictEqual(goAwayWith(ErrorCode.enhanceYourCalm));
  });

  test("CONTINUATION ends the connection (CVE-2024-27316)", async () => {
    await using engine = await startEngine({ limits: { continuations: 3 } });
    using connection = await openFrames(engine.address);
    const empty = frame(frameType.continuation, 0, 1);
    connection.send(frame(frameType.headers, frameFlag.endStream, 1, getBlock), empty, empty, empty);
    connection.send(frame(frameType.continuation, frameFlag.endHeaders, 1));
    expect(await connection.readEnd(1)).toStrictEqual(goAwayWith(ErrorCode.enhanceYourCalm));
  });

  test("a header block as long as the limit is taken, and one octet more is not", async () => {
    const headerBlockBytes = getBlock.byteLength;
    for (const [more, want] of [
      [0, answered],
      [1, goAwayWith(ErrorCode.enhanceYourCalm)],
    ] as const) {
      await using engine = await startEngine({ limits: { headerBlockBytes } });
      using connection = await openFrames(engine.address);
      // The octet more is an update of the table size that changes nothing.
      const block = Buffer.concat([Buffer.alloc(more, 0x20), getBlock]);
      connection.send(
        frame(frameType.headers, frameFlag.endStream, 1, block.subarray(0, 9)),
        frame(frameType.continuation, frameFlag.endHeaders, 1, block.subarray(9)),
      );
      expect(await connection.readEnd(1)).toStrictEqual(want);
    }
  });

  test("updates that follow the DATA we sent is none", async () => {
    const body = Buffer.alloc(50);
    await using engine = await startEngine({
      limits: { windowUpdates: 1 },
      serve: (stream) => {
        stream.receiver = receiving(stream);
        stream.sendHeaders([], false);
        for (const octet of body) stream.sendData(Buffer.from([octet]));
      },
    });
    using connection = await openFrames(engine.address);
    connection.send(begun(1));
    for (let seen = 0; seen < body.byteLength; seen++)
      await connection.readUntil(({ type }) => type === frameType.data);
    connection.send(...Array.from({ length: 50 }, () => [windowUpdateFrame(0, 1), windowUpdateFrame(1, 1)]).flat());
    expect(await isAlive(connection, ping)).toBe(true);
  });
});

describe("the counts of what a peer does", () => {
  test("begin anew with each interval", async () => {
    await using engine = await startEngine({ limits: { pings: 5, intervalMs: 10 } });
    using connection = await openFrames(engine.address);
    for (let wave = 0; wave < 3; wave++) {
      for (let i = 0; i < 5; i++) expect(await isAlive(connection, ping)).toBe(true);
      // Several intervals, in which the event loop turns.
      const untilMs = performance.now() + 50;
      while (performance.now() < untilMs) await nextTurn();
    }
  });

  test("keep what was allowed for and has not come yet", () => {
    const guard = new FloodGuard({ ...defaultHttp2Limits, windowUpdates: 1 });
    guard.allow("windowUpdates", 2);
    guard.restart();
    for (let i = 0; i < 3; i++) guard.count("windowUpdates");
    expect(() => guard.count("windowUpdates")).toThrow("too many windowUpdates");
    guard.restart();
    expect(() => guard.count("windowUpdates")).not.toThrow();
  });
});

/** Waits until all that was sent has been taken. @returns whether the connection is still there */
async function isAlive(connection: FrameConnection, probe: Frame): Promise<boolean> {
  connection.send(probe);
  const isReply = ({ type, flags }: Frame): boolean => type === probe.type && flags === frameFlag.ack;
  const reply = await connection.readUntil((one) => one.type === frameType.goAway || isReply(one));
  return reply !== undefined && isReply(reply);
}
