import { ErrorCode } from "../../../src/gateway/carriers/index.ts";
import {
  dataFrame,
  frame,
  type Frame,
  frameFlag,
  frameType,
  headersFrame,
  resetFrame,
  type StreamEnd,
} from "../carriers/http2-frames.ts";
import {
  answered,
  begun,
  getBlock,
  getHeader,
  hold,
  postHeader,
  resetWith,
  settingFrame,
  uint32,
  whole,
  windowUpdateFrame,
} from "./http2-requests.ts";

const { endStream, endHeaders, padded, priority } = frameFlag;
const { protocolError, flowControlError, streamClosed, frameSizeError } = ErrorCode;
const text = (of: string): Buffer => Buffer.from(of, "latin1");

/** What a client sends, and how that ends. */
export interface FrameRow {
  readonly name: string;
  readonly sent: readonly Frame[];
  /** How stream 1 ends, or the connection. */
  readonly want: StreamEnd;
}

/** The rows that end in one way: what is sent, by their names. */
export function ending(want: StreamEnd, sent: Readonly<Record<string, readonly Frame[]>>): readonly FrameRow[] {
  return Object.entries(sent).map(([name, frames]) => ({ name, sent: frames, want }));
}

/** What is good, or wrong with one stream: the connection goes on. */
export const streamRows: readonly FrameRow[] = [
  ...ending(answered, {
    "§4.1: a frame of a type that nobody knows": [frame(0x16, 0xff, 0, text("?")), whole(1)],
    "§4.1: flags that nobody knows": [headersFrame(1, getHeader, endStream | 0xc2)],
    "§4.1: the reserved bit": [frame(frameType.headers, endStream | endHeaders, 0x8000_0001, getBlock)],
    "§6.1: padded DATA": [begun(1), frame(frameType.data, padded | endStream, 1, text("\x03abc\0\0\0"))],
    "§6.1: DATA of nothing but padding": [begun(1), frame(frameType.data, padded | endStream, 1, text("\x02\0\0"))],
    "§6.2: padded HEADERS with priority": [
      frame(
        frameType.headers,
        endStream | endHeaders | padded | priority,
        1,
        Buffer.concat([text("\x02"), uint32(0), text("\x10"), getBlock, text("\0\0")]),
      ),
    ],
    "§6.2: HEADERS without priority behind others with it": [
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
    "§6.4: a reset that crosses the answer": [whole(1), resetFrame(1, 8)],
    "§6.5.2: a setting that nobody knows": [settingFrame(0xff, 1), whole(1)],
    "§6.5.2: the smallest window there is, and an update": [
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
    "§6.9: WINDOW_UPDATE that crosses the answer": [whole(1), windowUpdateFrame(1, 5)],
    "§6.8: GOAWAY of the client, whose streams go on": [
      begun(1),
      frame(frameType.goAway, 0, 0, uint32(0, 0)),
      dataFrame(1, text("x"), endStream),
    ],
    "§6.10: a header block in four frames": [
      frame(frameType.headers, endStream, 1, getBlock.subarray(0, 5)),
      frame(frameType.continuation, 0, 1, getBlock.subarray(5, 5)),
      frame(frameType.continuation, 0, 1, getBlock.subarray(5, 20)),
      frame(frameType.continuation, endHeaders, 1, getBlock.subarray(20)),
    ],
    "§8.1: a trailer section": [begun(1), dataFrame(1, text("x")), headersFrame(1, [["a", "b"]], endStream)],
    "§8.1.1: as much body as was announced": [
      begun(1, ["content-length", "2"]),
      dataFrame(1, text("a")),
      dataFrame(1, text("b"), endStream),
    ],
    "§5.1.2: a stream more than the limit": [begun(3), begun(5), begun(7), begun(9), whole(11)],
  }),
  ...ending(resetWith(streamClosed), {
    "§6.1: DATA behind the end of the body": [headersFrame(1, postHeader(hold), endStream), dataFrame(1, text("x"))],
    "§6.2: HEADERS behind the end of the body": [
      headersFrame(1, postHeader(hold), endStream),
      headersFrame(1, [["a", "b"]], endStream),
    ],
  }),
  ...ending(resetWith(protocolError), {
    "§5.3.1 of RFC 7540: HEADERS that depend on themselves": [
      frame(
        frameType.headers,
        endStream | endHeaders | priority,
        1,
        Buffer.concat([uint32(1), text("\x10"), getBlock]),
      ),
    ],
    "§6.9: WINDOW_UPDATE of nothing for a stream": [begun(1), windowUpdateFrame(1, 0)],
    "§8.1: a trailer section that does not end the stream": [begun(1), headersFrame(1, [["a", "b"]])],
    "§8.1: a pseudo-header field in the trailer section": [begun(1), headersFrame(1, [[":path", "/"]], endStream)],
    "§8.1.1: more body than was announced": [begun(1, ["content-length", "2"]), dataFrame(1, text("abc"))],
    "§8.1.1: less body than was announced": [begun(1, ["content-length", "2"]), dataFrame(1, text("a"), endStream)],
    "§8.1.1: less body than was announced, and a trailer section": [
      begun(1, ["content-length", "2"]),
      headersFrame(1, [["a", "b"]], endStream),
    ],
    "§8.1.1: a body that was announced and is none": [headersFrame(1, postHeader(["content-length", "2"]), endStream)],
  }),
  ...ending(resetWith(frameSizeError), {
    "§6.3: PRIORITY of a wrong size": [begun(1), frame(frameType.priority, 0, 1, uint32(0))],
  }),
  ...ending(resetWith(flowControlError), {
    "§6.9.1: a stream's window above 2^31-1": [begun(1), windowUpdateFrame(1, 2 ** 31 - 1)],
    "§6.9.1: more DATA than the stream's window": [
      begun(1, hold),
      ...Array.from({ length: 5 }, () => dataFrame(1, Buffer.alloc(16_384))),
    ],
  }),
];
