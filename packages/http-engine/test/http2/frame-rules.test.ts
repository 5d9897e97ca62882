import { describe, expect, test } from "vitest";
import { ErrorCode } from "../../../http/src/exchange/index.ts";
import {
  clientPreface,
  dataFrame,
  frame,
  type Frame,
  frameFlag,
  frameType,
  headersFrame,
  openFrames,
  resetFrame,
  type StreamEnd,
} from "../../../testing/src/http/http2-frames.ts";
import { startEngine } from "../../../testing/src/http2/http2-engine.ts";
import {
  answered,
  begun,
  echoUnlessHeld,
  getBlock,
  getHeader,
  goAwayWith,
  hold,
  postHeader,
  resetWith,
  settingFrame,
  uint32,
  whole,
  windowUpdateFrame,
} from "../../../testing/src/http2/http2-requests.ts";

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
function casesWith(want: StreamEnd, sent: Readonly<Record<string, readonly Frame[]>>): readonly FrameCase[] {
  return Object.entries(sent).map(([name, frames]) => ({ name, sent: frames, want }));
}

/** Valid frames, and stream errors. The connection stays open. */
const streamCases: readonly FrameCase[] = [
  ...casesWith(answered, {
    "§4.1: a frame of an unknown type": [frame(0x16, 0xff, 0, text("?")), whole(1)],
    "§4.1: unknown flags": [headersFrame(1, getHeader, endStream | 0xc2)],
    "§4.1: the reserved bit": [frame(frameType.headers, endStream | endHeaders, 0x8000_0001, getBlock)],
    "§6.1: padded DATA": [begun(1), frame(frameType.data, padded | endStream, 1, text("\x03abc\0\0\0"))],
    "§6.1: DATA with only padding": [begun(1), frame(frameType.data, padded | endStream, 1, text("\x02\0\0"))],
    "§6.2: padded HEADERS with priority": [
      frame(
        frameType.headers,
        endStream | endHeaders | padded | priority,
        1,
        Buffer.concat([text("\x02"), uint32(0), text("\x10"), getBlock, text("\0\0")]),
      ),
    ],
    "§6.2: HEADERS without priority after others with it": [
      frame(
        frameType.headers,
        endStream | endHeaders | priority,
        3,
        Buffer.concat([uint32(11), text("\x10"), getBlock]),
      ),
      whole(11),
    ],
    "§6.3: PRIORITY on an idle stream": [
      frame(frameType.priority, 0, 7, Buffer.concat([uint32(0), text("\x10")])),
      whole(1),
    ],
    "§6.4: a reset that crosses the response": [whole(1), resetFrame(1, 8)],
    "§6.5.2: an unknown setting": [settingFrame(0xff, 1), whole(1)],
    "§6.5.2: an initial window of 0, and a WINDOW_UPDATE": [
      settingFrame(4, 0),
      begun(1),
      dataFrame(1, text("abc"), endStream),
      windowUpdateFrame(1, 3),
    ],
    "§6.9.2: a window that becomes negative and positive again": [
      settingFrame(4, 2),
      begun(1),
      dataFrame(1, text("abcd"), endStream),
      settingFrame(4, 0),
      windowUpdateFrame(1, 2),
      windowUpdateFrame(1, 2),
    ],
    "§6.9: WINDOW_UPDATE that crosses the response": [whole(1), windowUpdateFrame(1, 5)],
    "§6.8: GOAWAY of the client, whose streams continue": [
      begun(1),
      frame(frameType.goAway, 0, 0, uint32(0, 0)),
      dataFrame(1, text("x"), endStream),
    ],
    "§6.10: a field block in four frames": [
      frame(frameType.headers, endStream, 1, getBlock.subarray(0, 5)),
      frame(frameType.continuation, 0, 1, getBlock.subarray(5, 5)),
      frame(frameType.continuation, 0, 1, getBlock.subarray(5, 20)),
      frame(frameType.continuation, endHeaders, 1, getBlock.subarray(20)),
    ],
    "§6.10: two field blocks in two frames each": [3, 11].flatMap((id) => [
      frame(frameType.headers, endStream, id, getBlock.subarray(0, 5)),
      frame(frameType.continuation, endHeaders, id, getBlock.subarray(5)),
    ]),
    "§8.1: a trailer section": [begun(1), dataFrame(1, text("x")), headersFrame(1, [["a", "b"]], endStream)],
    "§8.1.1: a body of the announced length": [
      begun(1, ["content-length", "2"]),
      dataFrame(1, text("a")),
      dataFrame(1, text("b"), endStream),
    ],
    "§5.1.2: one stream above the limit": [begun(3), begun(5), begun(7), begun(9), whole(11)],
  }),
  ...casesWith(resetWith(streamClosed), {
    "§6.1: DATA after END_STREAM": [headersFrame(1, postHeader(hold), endStream), dataFrame(1, text("x"))],
    "§6.2: HEADERS after END_STREAM": [
      headersFrame(1, postHeader(hold), endStream),
      headersFrame(1, [["a", "b"]], endStream),
    ],
  }),
  ...casesWith(resetWith(protocolError), {
    "§5.3.1 of RFC 7540: HEADERS of a stream that depends on itself": [
      frame(
        frameType.headers,
        endStream | endHeaders | priority,
        1,
        Buffer.concat([uint32(1), text("\x10"), getBlock]),
      ),
    ],
    "§6.9: WINDOW_UPDATE of 0 on a stream": [begun(1), windowUpdateFrame(1, 0)],
    "§8.1: a trailer section that does not end the stream": [begun(1), headersFrame(1, [["a", "b"]])],
    "§8.1: a pseudo-header field in the trailer section": [begun(1), headersFrame(1, [[":path", "/"]], endStream)],
    "§8.1.1: a body longer than announced": [begun(1, ["content-length", "2"]), dataFrame(1, text("abc"))],
    "§8.1.1: a body shorter than announced": [begun(1, ["content-length", "2"]), dataFrame(1, text("a"), endStream)],
    "§8.1.1: a body shorter than announced, and a trailer section": [
      begun(1, ["content-length", "2"]),
      headersFrame(1, [["a", "b"]], endStream),
    ],
    "§8.1.1: an announced body that is missing": [headersFrame(1, postHeader(["content-length", "2"]), endStream)],
  }),
  ...casesWith(resetWith(frameSizeError), {
    "§6.3: PRIORITY of a wrong length": [begun(1), frame(frameType.priority, 0, 1, uint32(0))],
  }),
  ...casesWith(resetWith(flowControlError), {
    "§6.9.1: a stream window above 2^31-1": [begun(1), windowUpdateFrame(1, 2 ** 31 - 1)],
    "§6.9.1: more DATA than the stream window": [
      begun(1, hold),
      ...Array.from({ length: 5 }, () => dataFrame(1, Buffer.alloc(16_384))),
    ],
  }),
];

/** Connection errors. The connection is closed. */
const connectionCases: readonly FrameCase[] = [
  ...casesWith(goAwayWith(frameSizeError), {
    "§4.2: a frame that is too large": [begun(1), dataFrame(1, Buffer.alloc(16_385))],
    "§6.1: padded DATA without its length": [begun(1), frame(frameType.data, padded, 1)],
    "§6.2: padded HEADERS without its length": [frame(frameType.headers, endHeaders | padded, 1)],
    "§6.2: HEADERS with truncated priority": [frame(frameType.headers, endHeaders | priority, 1, uint32(0))],
    "§6.3: PRIORITY of a wrong length on an idle stream": [frame(frameType.priority, 0, 1, uint32(1))],
    "§6.4: RST_STREAM of a wrong length": [begun(1), frame(frameType.resetStream, 0, 1, Buffer.alloc(3))],
    "§6.5: SETTINGS of a wrong length": [frame(frameType.settings, 0, 0, Buffer.alloc(7))],
    "§6.5: an acknowledgement with settings": [frame(frameType.settings, ack, 0, Buffer.alloc(6))],
    "§6.7: PING of a wrong length": [frame(frameType.ping, 0, 0, Buffer.alloc(7))],
    "§6.8: GOAWAY of a wrong length": [frame(frameType.goAway, 0, 0, Buffer.alloc(7))],
    "§6.9: WINDOW_UPDATE of a wrong length": [frame(frameType.windowUpdate, 0, 0, Buffer.alloc(3))],
  }),
  ...casesWith(goAwayWith(compressionError), {
    "§4.3: a field block that is not HPACK": [frame(frameType.headers, endHeaders | endStream, 1, text("\xbe"))],
  }),
  ...casesWith(goAwayWith(protocolError), {
    "§4.3: a frame of another stream inside a field block": [
      frame(frameType.headers, endStream, 1, getBlock),
      whole(3),
    ],
    "§4.3: a frame of stream 0 inside a field block": [
      frame(frameType.headers, endStream, 1, getBlock),
      frame(frameType.ping, 0, 0, Buffer.alloc(8)),
    ],
    "§4.3: an unknown frame inside a field block": [
      frame(frameType.headers, endStream, 1, getBlock),
      frame(0x16, 0, 0),
    ],
    "§5.1: DATA on an idle stream": [dataFrame(1, text("x"))],
    "§5.1: RST_STREAM on an idle stream": [resetFrame(1, 8)],
    "§5.1: WINDOW_UPDATE on an idle stream": [windowUpdateFrame(1, 1)],
    "§5.1: DATA on a server-initiated stream": [begun(5), dataFrame(2, text("x"))],
    "§5.1.1: a stream with an even identifier": [whole(2)],
    "§6.1: DATA on stream 0": [dataFrame(0, text("x"))],
    "§6.1: padding as long as its frame": [begun(1), frame(frameType.data, padded, 1, text("\x04abc"))],
    "§6.2: HEADERS on stream 0": [frame(frameType.headers, endHeaders, 0, getBlock)],
    "§6.2: padding longer than HEADERS": [frame(frameType.headers, endHeaders | padded, 1, text("\x10abc"))],
    "§6.3: PRIORITY on stream 0": [frame(frameType.priority, 0, 0, Buffer.alloc(5))],
    "§6.3: PRIORITY of an idle stream that depends on itself": [
      frame(frameType.priority, 0, 3, Buffer.concat([uint32(3), Buffer.of(0)])),
    ],
    "§6.4: RST_STREAM on stream 0": [resetFrame(0, 8)],
    "§6.5: SETTINGS on a stream": [frame(frameType.settings, 0, 1)],
    "§6.5.2: ENABLE_PUSH of 2": [settingFrame(2, 2)],
    "§6.5.2: SETTINGS_MAX_FRAME_SIZE below 2^14": [settingFrame(5, 16_383)],
    "§6.5.2: SETTINGS_MAX_FRAME_SIZE above 2^24-1": [settingFrame(5, 2 ** 24)],
    "§6.7: PING on a stream": [frame(frameType.ping, 0, 1, Buffer.alloc(8))],
    "§6.8: GOAWAY on a stream": [frame(frameType.goAway, 0, 1, Buffer.alloc(8))],
    "§6.9: WINDOW_UPDATE of 0 on stream 0": [windowUpdateFrame(0, 0)],
    "§6.10: CONTINUATION without HEADERS": [frame(frameType.continuation, endHeaders, 1, getBlock)],
    "§6.10: CONTINUATION of a complete block": [begun(1), frame(frameType.continuation, endHeaders, 1)],
    "§6.10: CONTINUATION on another stream": [
      frame(frameType.headers, endStream, 1, getBlock),
      frame(frameType.continuation, endHeaders, 3),
    ],
    "§6.10: CONTINUATION on stream 0": [frame(frameType.continuation, endHeaders, 0)],
    "§8.4: PUSH_PROMISE of a client": [frame(frameType.pushPromise, endHeaders, 1, uint32(2))],
  }),
  ...casesWith(goAwayWith(streamClosed), {
    "§5.1: DATA on a stream that both have closed": [begun(1), resetFrame(1, 8), dataFrame(1, text("x"))],
    "§5.1: HEADERS on a stream that was reset": [begun(1), resetFrame(1, 8), whole(1)],
    "§5.1.1: a stream below a used one": [begun(5), whole(3)],
  }),
  ...casesWith(goAwayWith(flowControlError), {
    "§6.5.2: an initial window above 2^31-1": [settingFrame(4, 2 ** 31)],
    "§6.9.2: an initial window that makes a stream window too large": [
      begun(1),
      windowUpdateFrame(1, 2 ** 31 - 65_536),
      settingFrame(4, 65_536),
    ],
    "§6.9.1: a connection window above 2^31-1": [windowUpdateFrame(0, 2 ** 31 - 1)],
    "§6.9.1: more DATA than the connection window": [
      begun(1, hold),
      begun(3, hold),
      ...[1, 3].flatMap((id) => Array.from({ length: 4 }, () => dataFrame(id, Buffer.alloc(16_383)))),
      dataFrame(3, Buffer.alloc(3)),
      dataFrame(1, text("12345678")),
    ],
  }),
];

const limits = { concurrentStreams: 5, streamWindowBytes: 65_535, connectionWindowBytes: 131_070 };

describe("an HTTP/2 connection", () => {
  test.each(streamCases)("with $name stays open", async ({ sent, want }) => {
    await using engine = await startEngine({ serve: echoUnlessHeld, limits });
    using connection = await openFrames(engine.address);
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
  ])("that starts with $name is closed (§3.4)", async ({ sent }) => {
    await using engine = await startEngine();
    using connection = await openFrames(engine.address, { settled: false });
    connection.socket.write(clientPreface);
    connection.send(sent, frame(settings, 0, 0));
    expect(await connection.readEnd(1)).toStrictEqual(goAwayWith(ErrorCode.protocolError));
  });

  test.each(connectionCases)("with $name is closed", async ({ sent, want }) => {
    await using engine = await startEngine({ serve: echoUnlessHeld, limits });
    using connection = await openFrames(engine.address);
    connection.send(...sent);
    expect(await connection.readEnd(1)).toStrictEqual(want);
    expect(await connection.readUntil(() => false)).toBeUndefined();
  });
});
