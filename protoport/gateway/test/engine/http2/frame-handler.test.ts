import { describe, expect, test } from "vitest";
import { ErrorCode } from "../../../src/http/exchange/index.ts";
// oxfmt-ignore
import { clientPreface, dataFrame, frame, type Frame, frameFlag, frameType, headersFrame, openFrames, pingFrame,
  resetFrame, type StreamEnd } from "@protoport/testing/http";
import { openEngine, startEngine } from "../../../../testing/src/http2/http2-engine.ts";
// oxfmt-ignore
import { answered, begun, echoUnlessHeld, getBlock, getHeader, goAwayWith, hold, postHeader, resetWith, settingFrame,
  uint32, whole, windowUpdateFrame } from "../../../../testing/src/http2/http2-requests.ts";

const { endStream, endHeaders, padded, priority, ack } = frameFlag;
const { protocolError, flowControlError, streamClosed, frameSizeError, compressionError } = ErrorCode;
const text = (of: string): Buffer => Buffer.from(of, "latin1");

/** The frames that a client sends, and the expected outcome. */
interface FrameCase {
  readonly name: string;
  readonly sent: readonly Frame[];
  /** How stream 1 or the connection should end. */
  readonly want: StreamEnd;
}

/** Returns test cases with the same outcome. Their frames are given by case name. */
const casesWith = (want: StreamEnd, sent: Readonly<Record<string, readonly Frame[]>>): readonly FrameCase[] =>
  Object.entries(sent).map(([name, frames]) => ({ name, sent: frames, want }));

/** Valid frames, and stream errors. The connection stays open. */
// oxfmt-ignore
const streamCases: readonly FrameCase[] = [
  ...casesWith(answered, {
    "a frame of an unknown type (§4.1)": [frame(0x16, 0xff, 0, text("?")), whole(1)],
    "unknown flags (§4.1)": [headersFrame(1, getHeader, endStream | 0xc2)],
    "the reserved bit (§4.1)": [frame(frameType.headers, endStream | endHeaders, 0x8000_0001, getBlock)],
    "padded DATA (§6.1)": [begun(1), frame(frameType.data, padded | endStream, 1, text("\x03abc\0\0\0"))],
    "DATA with only padding (§6.1)": [begun(1), frame(frameType.data, padded | endStream, 1, text("\x02\0\0"))],
    "padded HEADERS with priority (§6.2)": [frame(frameType.headers, endStream | endHeaders | padded | priority, 1,
        Buffer.concat([text("\x02"), uint32(0), text("\x10"), getBlock, text("\0\0")]))],
    "HEADERS without priority after HEADERS with priority (§6.2)": [frame(frameType.headers,
        endStream | endHeaders | priority, 3, Buffer.concat([uint32(11), text("\x10"), getBlock])), whole(11)],
    "PRIORITY on an idle stream (§6.3)": [frame(frameType.priority, 0, 7, Buffer.concat([uint32(0), text("\x10")])),
      whole(1)],
    "a reset that crosses the response (§6.4)": [whole(1), resetFrame(1, 8)],
    "an unknown setting (§6.5.2)": [settingFrame(0xff, 1), whole(1)],
    "an initial window of 0, and a WINDOW_UPDATE (§6.5.2)": [settingFrame(4, 0), begun(1),
      dataFrame(1, text("abc"), endStream), windowUpdateFrame(1, 3)],
    "WINDOW_UPDATE that crosses the response (§6.9)": [whole(1), windowUpdateFrame(1, 5)],
    "GOAWAY of a client that continues a stream (§6.8)": [begun(1), frame(frameType.goAway, 0, 0, uint32(0, 0)),
      dataFrame(1, text("x"), endStream)],
    "a field block in four frames (§6.10)": [frame(frameType.headers, endStream, 1, getBlock.subarray(0, 5)),
      frame(frameType.continuation, 0, 1, getBlock.subarray(5, 5)),
      frame(frameType.continuation, 0, 1, getBlock.subarray(5, 20)),
      frame(frameType.continuation, endHeaders, 1, getBlock.subarray(20))],
    "two field blocks in two frames each (§6.10)": [3,
      11].flatMap((id) => [frame(frameType.headers, endStream, id, getBlock.subarray(0, 5)),
        frame(frameType.continuation, endHeaders, id, getBlock.subarray(5))]),
    "a trailer section (§8.1)": [begun(1), dataFrame(1, text("x")), headersFrame(1, [["a", "b"]], endStream)],
    "a body of the announced length (§8.1.1)": [begun(1, ["content-length", "2"]), dataFrame(1, text("a")),
      dataFrame(1, text("b"), endStream)],
    "one stream above the limit (§5.1.2)": [begun(3), begun(5), begun(7), begun(9), whole(11)],
  }),
  ...casesWith(resetWith(streamClosed), {
    "DATA after END_STREAM (§6.1)": [headersFrame(1, postHeader(hold), endStream), dataFrame(1, text("x"))],
    "HEADERS after END_STREAM (§6.2)": [headersFrame(1, postHeader(hold), endStream),
      headersFrame(1, [["a", "b"]], endStream)],
  }),
  ...casesWith(resetWith(protocolError), {
    "HEADERS of a stream that depends on itself (RFC 7540 §5.3.1)": [frame(frameType.headers,
        endStream | endHeaders | priority, 1, Buffer.concat([uint32(1), text("\x10"), getBlock]))],
    "WINDOW_UPDATE of 0 on a stream (§6.9)": [begun(1), windowUpdateFrame(1, 0)],
    "a trailer section that does not end the stream (§8.1)": [begun(1), headersFrame(1, [["a", "b"]])],
    "a pseudo-header field in the trailer section (§8.1)": [begun(1), headersFrame(1, [[":path", "/"]], endStream)],
    "a body longer than announced (§8.1.1)": [begun(1, ["content-length", "2"]), dataFrame(1, text("abc"))],
    "a body shorter than announced (§8.1.1)": [begun(1, ["content-length", "2"]), dataFrame(1, text("a"), endStream)],
    "a body shorter than announced, and a trailer section (§8.1.1)": [begun(1, ["content-length", "2"]),
      headersFrame(1, [["a", "b"]], endStream)],
    "an announced body that is missing (§8.1.1)": [headersFrame(1, postHeader(["content-length", "2"]), endStream)],
  }),
  ...casesWith(resetWith(frameSizeError),
    { "PRIORITY of a wrong length (§6.3)": [begun(1), frame(frameType.priority, 0, 1, uint32(0))] }),
  ...casesWith(resetWith(flowControlError), {
    "a stream window above 2^31-1 (§6.9.1)": [begun(1), windowUpdateFrame(1, 2 ** 31 - 1)],
    "more DATA than the stream window (§6.9.1)": [begun(1, hold),
      ...Array.from({ length: 5 }, () => dataFrame(1, Buffer.alloc(16_384)))],
  }),
];

/** Connection errors. The connection is closed. */
// oxfmt-ignore
const connectionCases: readonly FrameCase[] = [
  ...casesWith(goAwayWith(frameSizeError), {
    "a frame that is too large (§4.2)": [begun(1), dataFrame(1, Buffer.alloc(16_385))],
    "padded DATA without its length (§6.1)": [begun(1), frame(frameType.data, padded, 1)],
    "padded HEADERS without its length (§6.2)": [frame(frameType.headers, endHeaders | padded, 1)],
    "HEADERS with truncated priority (§6.2)": [frame(frameType.headers, endHeaders | priority, 1, uint32(0))],
    "PRIORITY of a wrong length on an idle stream (§6.3)": [frame(frameType.priority, 0, 1, uint32(1))],
    "RST_STREAM of a wrong length (§6.4)": [begun(1), frame(frameType.resetStream, 0, 1, Buffer.alloc(3))],
    "SETTINGS of a wrong length (§6.5)": [frame(frameType.settings, 0, 0, Buffer.alloc(7))],
    "an acknowledgement with settings (§6.5)": [frame(frameType.settings, ack, 0, Buffer.alloc(6))],
    "PING of a wrong length (§6.7)": [frame(frameType.ping, 0, 0, Buffer.alloc(7))],
    "GOAWAY of a wrong length (§6.8)": [frame(frameType.goAway, 0, 0, Buffer.alloc(7))],
    "WINDOW_UPDATE of a wrong length (§6.9)": [frame(frameType.windowUpdate, 0, 0, Buffer.alloc(3))],
  }),
  ...casesWith(goAwayWith(compressionError),
    { "a field block that is not HPACK (§4.3)": [frame(frameType.headers, endHeaders | endStream, 1, text("\xbe"))] }),
  ...casesWith(goAwayWith(protocolError), {
    "a frame on another stream inside a field block (§4.3)": [frame(frameType.headers, endStream, 1, getBlock),
      whole(3)],
    "a frame on stream 0 inside a field block (§4.3)": [frame(frameType.headers, endStream, 1, getBlock),
      pingFrame],
    "an unknown frame inside a field block (§4.3)": [frame(frameType.headers, endStream, 1, getBlock),
      frame(0x16, 0, 0)],
    "DATA on an idle stream (§5.1)": [dataFrame(1, text("x"))],
    "RST_STREAM on an idle stream (§5.1)": [resetFrame(1, 8)],
    "WINDOW_UPDATE on an idle stream (§5.1)": [windowUpdateFrame(1, 1)],
    "DATA on a server-initiated stream (§5.1)": [begun(5), dataFrame(2, text("x"))],
    "a stream with an even identifier (§5.1.1)": [whole(2)],
    "DATA on stream 0 (§6.1)": [dataFrame(0, text("x"))],
    "padding as long as its frame (§6.1)": [begun(1), frame(frameType.data, padded, 1, text("\x04abc"))],
    "HEADERS on stream 0 (§6.2)": [frame(frameType.headers, endHeaders, 0, getBlock)],
    "padding longer than HEADERS (§6.2)": [frame(frameType.headers, endHeaders | padded, 1, text("\x10abc"))],
    "PRIORITY on stream 0 (§6.3)": [frame(frameType.priority, 0, 0, Buffer.alloc(5))],
    "PRIORITY of an idle stream that depends on itself (§6.3)": [frame(frameType.priority, 0, 3,
        Buffer.concat([uint32(3), Buffer.of(0)]))],
    "RST_STREAM on stream 0 (§6.4)": [resetFrame(0, 8)],
    "SETTINGS on a stream (§6.5)": [frame(frameType.settings, 0, 1)],
    "ENABLE_PUSH of 2 (§6.5.2)": [settingFrame(2, 2)],
    "SETTINGS_MAX_FRAME_SIZE below 2^14 (§6.5.2)": [settingFrame(5, 16_383)],
    "SETTINGS_MAX_FRAME_SIZE above 2^24-1 (§6.5.2)": [settingFrame(5, 2 ** 24)],
    "PING on a stream (§6.7)": [frame(frameType.ping, 0, 1, Buffer.alloc(8))],
    "GOAWAY on a stream (§6.8)": [frame(frameType.goAway, 0, 1, Buffer.alloc(8))],
    "WINDOW_UPDATE of 0 on stream 0 (§6.9)": [windowUpdateFrame(0, 0)],
    "CONTINUATION without HEADERS (§6.10)": [frame(frameType.continuation, endHeaders, 1, getBlock)],
    "CONTINUATION of a complete block (§6.10)": [begun(1), frame(frameType.continuation, endHeaders, 1)],
    "CONTINUATION on another stream (§6.10)": [frame(frameType.headers, endStream, 1, getBlock),
      frame(frameType.continuation, endHeaders, 3)],
    "CONTINUATION on stream 0 (§6.10)": [frame(frameType.continuation, endHeaders, 0)],
    "PUSH_PROMISE of a client (§8.4)": [frame(frameType.pushPromise, endHeaders, 1, uint32(2))],
  }),
  ...casesWith(goAwayWith(streamClosed),
    { "DATA on a closed stream (§5.1)": [begun(1), resetFrame(1, 8), dataFrame(1, text("x"))],
      "HEADERS on a stream that was reset (§5.1)": [begun(1), resetFrame(1, 8), whole(1)],
      "a stream id below an earlier id (§5.1.1)": [begun(5), whole(3)] }),
  ...casesWith(goAwayWith(flowControlError), {
    "an initial window above 2^31-1 (§6.5.2)": [settingFrame(4, 2 ** 31)],
    "an initial window that makes a stream window too large (§6.9.2)": [begun(1),
      windowUpdateFrame(1, 2 ** 31 - 65_536), settingFrame(4, 65_536)],
    "a connection window above 2^31-1 (§6.9.1)": [windowUpdateFrame(0, 2 ** 31 - 1)],
    "more DATA than the connection window (§6.9.1)": [begun(1, hold), begun(3, hold),
      ...[1, 3].flatMap((id) => Array.from({ length: 4 }, () => dataFrame(id, Buffer.alloc(16_383)))),
      dataFrame(3, Buffer.alloc(3)), dataFrame(1, text("12345678"))],
  }),
];

const limits = { concurrentStreams: 5, streamWindowBytes: 65_535, connectionWindowBytes: 131_070 };

describe("an HTTP/2 connection", () => {
  test.each(streamCases)("that receives $name stays open", async ({ sent, want }) => {
    await using connection = await openEngine({ serve: echoUnlessHeld, limits });
    connection.send(...sent);
    const streamId = sent.some((one) => (one.streamId & 0x7fff_ffff) === 1) ? 1 : 11;
    expect(await connection.readEnd(streamId)).toStrictEqual(want);
    connection.send(windowUpdateFrame(0, 10), whole(99));
    expect(await connection.readEnd(99)).toStrictEqual(answered);
  });

  const { settings, ping } = frameType;
  test.each([
    { name: "an acknowledgement of SETTINGS", sent: frame(settings, frameFlag.ack, 0) },
    { name: "a PING", sent: frame(ping, 0, 0, Buffer.alloc(8)) },
    { name: "a request", sent: whole(1) },
  ])("is closed if it starts with $name (§3.4)", async ({ sent }) => {
    await using engine = await startEngine();
    using connection = await openFrames(engine.address, { settled: false });
    connection.socket.write(clientPreface);
    connection.send(sent, frame(settings, 0, 0));
    expect(await connection.readEnd(1)).toStrictEqual(goAwayWith(ErrorCode.protocolError));
  });

  test.each(connectionCases)("that receives $name is closed", async ({ sent, want }) => {
    await using engine = await startEngine({ serve: echoUnlessHeld, limits });
    using connection = await openFrames(engine.address);
    connection.send(...sent);
    expect([await connection.readEnd(1), await connection.readUntil(() => false)]).toStrictEqual([want, undefined]);
  });
});
