import { describe, expect, test } from "vitest";
import { ErrorCode } from "../../../src/http/exchange/index.ts";
import { BacklogBudget } from "../../../src/engine/backlog.ts";
import { encodeBlock } from "../../../src/engine/http2/hpack/encoder.ts";
import type { Http2Stream } from "../../../src/engine/http2/http2-stream.ts";
// oxfmt-ignore
import { answer, echo, openEngine, type ReceiverParts, receiving, startEngine, statusBlock
} from "../../../../testing/src/http2/http2-engine.ts";
// oxfmt-ignore
import { dataFrame, frame, type Frame, type FrameConnection, frameFlag, frameType, headersFrame, openFrames, pingFrame,
  resetFrame } from "@protoport/testing/http";
// oxfmt-ignore
import { answered, begun, echoUnlessHeld, getHeader, goAwayWith, hold, postHeader, resetWith, settingFrame, uint32,
  whole, windowUpdateFrame } from "../../../../testing/src/http2/http2-requests.ts";

const { endStream, endHeaders } = frameFlag;
const { protocolError, refusedStream } = ErrorCode;
const text = (of: string): Buffer => Buffer.from(of, "latin1");
const limits = { concurrentStreams: 5 };
const windowLimits = { connectionWindowBytes: 65_535, streamWindowBytes: 65_535, lingerMs: 60_000 };

async function framesBeforePing(connection: FrameConnection): Promise<Frame[]> {
  const frames: Frame[] = [];
  await connection.readUntil((one) => (frames.push(one), one.type === frameType.ping));
  return frames;
}

/** Returns the streams and increments of the WINDOW_UPDATE frames before the PING. */
async function credit(connection: FrameConnection): Promise<unknown[]> {
  const updates = (await framesBeforePing(connection)).filter(({ type }) => type === frameType.windowUpdate);
  return updates.map(({ streamId, payload }) => [streamId, payload.readUInt32BE(0)]);
}

describe("the engine", () => {
  test("refuses a stream above the limit with REFUSED_STREAM (§5.1.2, §8.7)", async () => {
    await using connection = await openEngine({ serve: echoUnlessHeld, limits });
    connection.send(...[1, 3, 5, 7, 9].map((id) => begun(id)), whole(11));
    expect(await connection.readEnd(11)).toStrictEqual(resetWith(refusedStream));
    connection.send(dataFrame(1, text("x"), endStream));
    expect(await connection.readEnd(1)).toStrictEqual(answered);
    connection.send(whole(13));
    expect(await connection.readEnd(13)).toStrictEqual(answered);
  });

  test("ignores frames that a client sent before it received a reset (§5.1)", async () => {
    await using connection = await openEngine({ serve: echoUnlessHeld });
    const trailer = headersFrame(1, [["a", "b"]], endStream);
    const late = [dataFrame(1, text("abc")), trailer, windowUpdateFrame(1, 5), resetFrame(1, 8)];
    connection.send(headersFrame(1, postHeader(["connection", "close"])), ...late, whole(3));
    expect(await connection.readEnd(1)).toStrictEqual(resetWith(protocolError));
    expect(await connection.readEnd(3)).toStrictEqual(answered);
  });

  test("sends the id of the last accepted stream in GOAWAY (§6.8)", async () => {
    await using engine = await startEngine({ serve: echoUnlessHeld });
    using connection = await openFrames(engine.address);
    connection.send(begun(1), begun(7), frame(frameType.ping, 0, 1, Buffer.alloc(8)));
    expect((await connection.readUntil(({ type }) => type === frameType.goAway))?.payload.readUInt32BE(0)).toBe(7);
  });

  test("ignores requests that follow a connection error in the same chunk", async () => {
    const served: number[] = [];
    await using connection = await openEngine({
      serve: (stream) => {
        served.push(stream.id);
        echo(stream);
      },
    });
    connection.send(whole(1), frame(frameType.ping, 0, 1, Buffer.alloc(8)), whole(3));
    expect([await connection.readUntil(() => false), served]).toStrictEqual([undefined, [1]]);
  });

  test("ignores requests that follow a flood in the same chunk", async () => {
    const served: number[] = [];
    await using connection = await openEngine({
      budget: new BacklogBudget(500),
      serve: (stream) => {
        served.push(stream.id);
        answer(stream, Buffer.alloc(1000));
      },
    });
    connection.send(settingFrame(4, 0), whole(1), whole(3));
    const last = await connection.readUntil(({ type }) => type === frameType.goAway);
    expect(last?.payload).toStrictEqual(uint32(1, ErrorCode.enhanceYourCalm));
    expect([await connection.readUntil(() => false), served]).toStrictEqual([undefined, [1]]);
  });

  test.each([
    { bytes: 16_383, frames: [16_383] },
    { bytes: 16_384, frames: [16_384] },
    { bytes: 16_385, frames: [16_384, 1] },
    { bytes: 32_768, frames: [16_384, 16_384] },
    { bytes: 32_769, frames: [16_384, 16_384, 1] },
  ])("sends a field block with $bytes octets in minimal frames (§4.3)", async ({ bytes, frames }) => {
    await using connection = await openEngine({
      // A table size update of one octet precedes the first block.
      serve: (stream) => stream.sendHeaders([Buffer.alloc(bytes - 1)], true),
    });
    connection.send(whole(1), pingFrame);
    const sent = (await framesBeforePing(connection)).filter(({ streamId }) => streamId === 1);
    expect(sent.map(({ payload }) => payload.byteLength)).toStrictEqual(frames);
    expect(sent.map(({ type, flags }) => [type, flags])).toStrictEqual(
      frames.map((_, i) => [
        i === 0 ? frameType.headers : frameType.continuation,
        (i === 0 ? endStream : 0) | (i === frames.length - 1 ? endHeaders : 0),
      ]),
    );
  });

  test.each([
    { name: "64 KiB", bytes: 65_536, want: answered },
    { name: "more", bytes: 65_537, want: resetWith(ErrorCode.internalError) },
    { name: "more if it announces more", announced: 70_000, bytes: 70_000, want: answered },
    { name: "more than it announces", announced: 70_000, bytes: 70_001, want: resetWith(ErrorCode.internalError) },
    { name: "64 KiB if it announces less", announced: 1_000, bytes: 65_536, want: answered },
  ])("sends a header section of $name only if clients accept it", async (row) => {
    await using connection = await openEngine({
      onFault: () => undefined,
      serve: (stream, { fields }) => {
        stream.receiver = receiving(stream);
        const section = Buffer.concat([statusBlock(200), Buffer.alloc(row.bytes - 1)]);
        stream.respond(fields.includes("hold") ? [section] : [statusBlock(200)], undefined, undefined);
      },
    });
    if (row.announced !== undefined) connection.send(settingFrame(6, row.announced));
    connection.send(headersFrame(1, [...getHeader, hold], endStream), whole(3));
    expect([await connection.readEnd(1), await connection.readEnd(3)]).toStrictEqual([row.want, answered]);
  });

  test("ends a response with an empty DATA frame after its header was sent (§8.1)", async () => {
    await using connection = await openEngine({
      serve: (stream) => {
        stream.sendHeaders([statusBlock(200)], false);
        stream.end(undefined, undefined);
      },
    });
    connection.send(whole(1));
    await connection.readUntil(({ streamId }) => streamId === 1);
    const last = await connection.readUntil(({ streamId }) => streamId === 1);
    expect(last).toMatchObject({ type: frameType.data, flags: endStream, payload: Buffer.of() });
  });

  test("does not pass empty DATA frames to the receiver", async () => {
    const pieces: string[] = [];
    await using connection = await openEngine({
      serve: (stream) => {
        const onData = (piece: Uint8Array): void => void pieces.push(Buffer.from(piece).toString());
        stream.receiver = receiving(stream, { onData, onEnd: () => answer(stream) });
      },
    });
    const padding = frame(frameType.data, frameFlag.padded, 1, text("\x02\0\0"));
    connection.send(begun(1), padding, dataFrame(1, text("a")), dataFrame(1, text("")));
    connection.send(dataFrame(1, text(""), endStream));
    expect([await connection.readEnd(1), pieces]).toStrictEqual([answered, ["a"]]);
  });

  test("sets END_STREAM on the last queued DATA frame", async () => {
    await using connection = await openEngine({
      serve: (stream) => {
        stream.receiver = receiving(stream);
        stream.sendHeaders([statusBlock(200)], false);
        for (const letter of "abc") stream.sendData(text(letter));
        stream.end(undefined, undefined);
      },
    });
    connection.send(settingFrame(4, 2), whole(1), pingFrame);
    const pieces: string[] = [];
    const take = ({ type, flags, payload }: Frame): boolean => {
      if (type === frameType.data) pieces.push(payload.toString());
      return type === frameType.ping || (type === frameType.data && flags === endStream);
    };
    await connection.readUntil(take);
    connection.send(windowUpdateFrame(1, 10));
    await connection.readUntil(take);
    expect(pieces).toEqual(["a", "b", "c"]);
  });

  test("can reset the last stream while its connection drains (§6.8)", async () => {
    const streams: Http2Stream[] = [];
    await using connection = await openEngine({
      serve: (stream) => {
        stream.receiver = receiving(stream);
        streams.push(stream);
      },
    });
    await connection.settle(begun(1));
    for (const one of connection.engine.connections) one.drain();
    const ping = await connection.readUntil(({ type }) => type === frameType.ping);
    connection.send(frame(frameType.ping, frameFlag.ack, 0, ping?.payload));
    await connection.readUntil(({ type }) => type === frameType.goAway);
    streams[0]?.reset(ErrorCode.cancel);
    expect(await connection.readEnd(1)).toStrictEqual(resetWith(ErrorCode.cancel));
  });

  const headersAndEnd = { type: frameType.headers, flags: endHeaders | endStream };
  const cancel = { type: frameType.resetStream, payload: uint32(ErrorCode.cancel) };
  test.each([
    ["a response", (stream: Http2Stream) => stream.sendHeaders([statusBlock(200)], true), headersAndEnd],
    ["a reset", (stream: Http2Stream) => stream.reset(ErrorCode.cancel), cancel],
  ])("sends nothing after %s on a stream with an incomplete request", async (_name, end, want) => {
    await using connection = await openEngine({
      serve: (stream) => {
        end(stream);
        stream.sendHeaders([statusBlock(200)], false);
        stream.sendData(text("more"));
        stream.respond([statusBlock(200)], text("another"), undefined);
        stream.end(text("last"), undefined);
        if (stream.closed) stream.reset(ErrorCode.noError);
      },
    });
    connection.send(begun(1), pingFrame);
    const sent = (await framesBeforePing(connection)).filter(({ streamId }) => streamId === 1);
    expect(sent).toMatchObject([want]);
  });

  test.each([
    { name: "to the stream and the connection when a response ends", trailer: undefined, want: [0, 1] },
    {
      name: "only to the connection when a trailer section ends the response",
      trailer: encodeBlock(["a", "b"]),
      want: [0],
    },
  ])("credits an unread body $name", async ({ trailer, want }) => {
    let heldBytes = 0;
    await using connection = await openEngine({
      serve: (stream) => {
        stream.receiver = receiving(stream, {
          onData: (piece) => {
            heldBytes += piece.byteLength;
            if (heldBytes === 48_000) stream.respond([statusBlock(200)], Buffer.alloc(1), trailer);
          },
        });
      },
      limits: windowLimits,
    });
    connection.send(begun(1), ...[1, 2, 3].map(() => dataFrame(1, Buffer.alloc(16_000))), pingFrame);
    expect(await credit(connection)).toStrictEqual(want.map((streamId) => [streamId, 48_000]));
    await connection.settle(dataFrame(1, text(""), endStream));
    expect([...connection.engine.connections].map(({ requests }) => requests)).toStrictEqual([0]);
  });

  test.each([
    { name: "to the stream and the connection while the response", trailer: undefined, want: [0, 1] },
    {
      name: "only to the connection while the response's trailer section",
      trailer: encodeBlock(["a", "b"]),
      want: [0],
    },
  ])("credits a body $name is queued", async ({ trailer, want }) => {
    await using connection = await openEngine({
      serve: (stream) => stream.respond([statusBlock(200)], Buffer.alloc(10), trailer),
      limits: windowLimits,
    });
    const body = [1, 2, 3].map(() => dataFrame(1, Buffer.alloc(16_000)));
    connection.send(settingFrame(4, 0), begun(1), ...body, pingFrame);
    expect(await credit(connection)).toStrictEqual(want.map((streamId) => [streamId, 48_000]));
    connection.send(dataFrame(1, text(""), endStream), windowUpdateFrame(1, 10));
    expect(await connection.readEnd(1)).toMatchObject({ kind: "responded" });
  });

  test.each([
    { name: "over 256 KiB after the response (§8.1)", trailer: undefined, want: ErrorCode.noError },
    {
      name: "more than its window after the trailer section (§6.9)",
      trailer: encodeBlock(["a", "b"]),
      want: ErrorCode.flowControlError,
    },
  ])("resets a stream that receives $name", async ({ trailer, want }) => {
    const serve = (stream: Http2Stream): void => stream.respond([statusBlock(200)], Buffer.alloc(1), trailer);
    await using connection = await openEngine({ serve, limits: { lingerMs: 60_000 } });
    const body = Array.from({ length: 17 }, () => dataFrame(1, Buffer.alloc(16_384)));
    connection.send(begun(1), ...body, pingFrame);
    const resets = (await framesBeforePing(connection)).filter(({ type }) => type === frameType.resetStream);
    expect(resets.map(({ payload }) => payload)).toStrictEqual([uint32(want)]);
  });

  test("does not count resets after the response as rapid resets", async () => {
    await using connection = await openEngine({ serve: (stream) => answer(stream), limits: { resets: 2 } });
    connection.send(...Array.from({ length: 20 }, (_, i) => [begun(2 * i + 1), resetFrame(2 * i + 1, 8)]).flat());
    connection.send(whole(41));
    expect(await connection.readEnd(41)).toStrictEqual(answered);
  });

  test("sends the response before the reset of an incomplete request (§8.1)", async () => {
    await using connection = await openEngine({
      serve: (stream) => {
        answer(stream);
        stream.reset(ErrorCode.noError);
      },
    });
    connection.send(begun(1));
    const frames = [await connection.readUntil(({ streamId }) => streamId === 1), await connection.readFrame()];
    expect(frames.map((one) => one?.type)).toStrictEqual([frameType.headers, frameType.resetStream]);
    connection.send(dataFrame(1, text("late")), whole(3));
    expect(await connection.readEnd(3)).toStrictEqual(answered);
  });

  test.each<[name: string, throwing: ReceiverParts, begin?: (stream: Http2Stream) => void]>([
    ["serve()", {}, thrower],
    ["onData()", { onData: thrower }],
    ["onEnd()", { onEnd: thrower }],
    ["onReset()", { onReset: thrower, onEnd: thrower }],
    ["onWritable()", { onWritable: thrower }, (stream) => stream.sendData(Buffer.alloc(65_536))],
  ])("resets only the affected stream when %s throws", async (_name, throwing, begin) => {
    const faults: unknown[] = [];
    await using connection = await openEngine({
      onFault: (error) => faults.push(error),
      serve: (stream) => {
        if (stream.id !== 1) return echo(stream);
        stream.receiver = receiving(stream, throwing);
        begin?.(stream);
      },
    });
    connection.send(begun(1), begun(3), windowUpdateFrame(1, 1), windowUpdateFrame(0, 100));
    connection.send(dataFrame(1, text("x"), endStream), dataFrame(3, text("x"), endStream));
    expect(await connection.readEnd(1)).toStrictEqual(resetWith(ErrorCode.internalError));
    expect(await connection.readEnd(3)).toStrictEqual(answered);
    expect(faults).toContainEqual(new Error("a fault of the test's"));
  });

  test("closes the connection with INTERNAL_ERROR if onFault throws (§5.4.1)", async () => {
    const faults: unknown[] = [];
    const errors: unknown[] = [];
    await using connection = await openEngine({
      onFault: (error) => {
        if (faults.push(error) === 1) throw new Error("a fault beyond the stream");
      },
      onError: (scope) => errors.push(scope),
      serve: thrower,
    });
    connection.send(whole(1));
    expect(await connection.readEnd(3)).toMatchObject(goAwayWith(ErrorCode.internalError));
    expect(faults).toEqual([new Error("a fault of the test's"), new Error("a fault beyond the stream")]);
    // An error in onFault does not count as a client error.
    expect(errors).toEqual([]);
  });
});

function thrower(): never {
  throw new Error("a fault of the test's");
}
