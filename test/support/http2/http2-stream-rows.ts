import { ErrorCode } from "../../../src/gateway/http2/index.ts";
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

/** What is good, or wrong with one stream: the connection goes on. */
export const streamRows: readonly FrameRow[] = [
  {
    name: "§4.1: a frame of a type that nobody knows",
    sent: [frame(0x16, 0xff, 0, text("?")), whole(1)],
    want: answered,
  },
  { name: "§4.1: flags that nobody knows", sent: [headersFrame(1, getHeader, endStream | 0xc2)], want: answered },
  {
    name: "§4.1: the reserved bit",
    sent: [frame(frameType.headers, endStream | endHeaders, 0x8000_0001, getBlock)],
    want: answered,
  },
  {
    name: "§6.1: padded DATA",
    sent: [begun(1), frame(frameType.data, padded | endStream, 1, text("\x03abc\0\0\0"))],
    want: answered,
  },
  {
    name: "§6.1: DATA of nothing but padding",
    sent: [begun(1), frame(frameType.data, padded | endStream, 1, text("\x02\0\0"))],
    want: answered,
  },
  {
    name: "§6.1: DATA behind the end of the body",
    sent: [headersFrame(1, postHeader(hold), endStream), dataFrame(1, text("x"))],
    want: resetWith(streamClosed),
  },
  {
    name: "§6.2: padded HEADERS with priority",
    sent: [
      frame(
        frameType.headers,
        endStream | endHeaders | padded | priority,
        1,
        Buffer.concat([text("\x02"), uint32(0), text("\x10"), getBlock, text("\0\0")]),
      ),
    ],
    want: answered,
  },
  {
    name: "§6.2: HEADERS behind the end of the body",
    sent: [headersFrame(1, postHeader(hold), endStream), headersFrame(1, [["a", "b"]], endStream)],
    want: resetWith(streamClosed),
  },
  {
    name: "§5.3.1 of RFC 7540: HEADERS that depend on themselves",
    sent: [
      frame(
        frameType.headers,
        endStream | endHeaders | priority,
        1,
        Buffer.concat([uint32(1), text("\x10"), getBlock]),
      ),
    ],
    want: resetWith(protocolError),
  },
  {
    name: "§6.2: HEADERS without priority behind others with it",
    sent: [
      frame(
        frameType.headers,
        endStream | endHeaders | priority,
        3,
        Buffer.concat([uint32(11), text("\x10"), getBlock]),
      ),
      whole(11),
    ],
    want: answered,
  },
  {
    name: "§6.3: PRIORITY on an idle stream",
    sent: [frame(frameType.priority, 0, 7, Buffer.concat([uint32(0), text("\x10")])), whole(1)],
    want: answered,
  },
  {
    name: "§6.3: PRIORITY of a wrong size",
    sent: [begun(1), frame(frameType.priority, 0, 1, uint32(0))],
    want: resetWith(frameSizeError),
  },
  { name: "§6.4: a reset that crosses the answer", sent: [whole(1), resetFrame(1, 8)], want: answered },
  { name: "§6.5.2: a setting that nobody knows", sent: [settingFrame(0xff, 1), whole(1)], want: answered },
  {
    name: "§6.5.2: the smallest window there is, and an update",
    sent: [settingFrame(4, 0), begun(1), dataFrame(1, text("abc"), endStream), windowUpdateFrame(1, 3)],
    want: answered,
  },
  {
    name: "§6.9.2: a window that becomes negative and positive again",
    sent: [
      settingFrame(4, 2),
      begun(1),
      dataFrame(1, text("abcd"), endStream),
      settingFrame(4, 0),
      windowUpdateFrame(1, 2),
      windowUpdateFrame(1, 2),
    ],
    want: answered,
  },
  {
    name: "§6.9: WINDOW_UPDATE of nothing for a stream",
    sent: [begun(1), windowUpdateFrame(1, 0)],
    want: resetWith(protocolError),
  },
  {
    name: "§6.9.1: a stream's window above 2^31-1",
    sent: [begun(1), windowUpdateFrame(1, 2 ** 31 - 1)],
    want: resetWith(flowControlError),
  },
  { name: "§6.9: WINDOW_UPDATE that crosses the answer", sent: [whole(1), windowUpdateFrame(1, 5)], want: answered },
  {
    name: "§6.8: GOAWAY of the client, whose streams go on",
    sent: [begun(1), frame(frameType.goAway, 0, 0, uint32(0, 0)), dataFrame(1, text("x"), endStream)],
    want: answered,
  },
  {
    name: "§6.10: a header block in four frames",
    sent: [
      frame(frameType.headers, endStream, 1, getBlock.subarray(0, 5)),
      frame(frameType.continuation, 0, 1, getBlock.subarray(5, 5)),
      frame(frameType.continuation, 0, 1, getBlock.subarray(5, 20)),
      frame(frameType.continuation, endHeaders, 1, getBlock.subarray(20)),
    ],
    want: answered,
  },
  {
    name: "§8.1: a trailer section",
    sent: [begun(1), dataFrame(1, text("x")), headersFrame(1, [["a", "b"]], endStream)],
    want: answered,
  },
  {
    name: "§8.1: a trailer section that does not end the stream",
    sent: [begun(1), headersFrame(1, [["a", "b"]])],
    want: resetWith(protocolError),
  },
  {
    name: "§8.1: a pseudo-header field in the trailer section",
    sent: [begun(1), headersFrame(1, [[":path", "/"]], endStream)],
    want: resetWith(protocolError),
  },
  {
    name: "§8.1.1: more body than was announced",
    sent: [begun(1, ["content-length", "2"]), dataFrame(1, text("abc"))],
    want: resetWith(protocolError),
  },
  {
    name: "§8.1.1: less body than was announced",
    sent: [begun(1, ["content-length", "2"]), dataFrame(1, text("a"), endStream)],
    want: resetWith(protocolError),
  },
  {
    name: "§8.1.1: less body than was announced, and a trailer section",
    sent: [begun(1, ["content-length", "2"]), headersFrame(1, [["a", "b"]], endStream)],
    want: resetWith(protocolError),
  },
  {
    name: "§8.1.1: a body that was announced and is none",
    sent: [headersFrame(1, postHeader(["content-length", "2"]), endStream)],
    want: resetWith(protocolError),
  },
  {
    name: "§8.1.1: as much body as was announced",
    sent: [begun(1, ["content-length", "2"]), dataFrame(1, text("a")), dataFrame(1, text("b"), endStream)],
    want: answered,
  },
  {
    name: "§5.1.2: a stream more than the limit",
    sent: [begun(3), begun(5), begun(7), begun(9), whole(11)],
    want: answered,
  },
  {
    name: "§6.9.1: more DATA than the stream's window",
    sent: [begun(1, hold), ...Array.from({ length: 5 }, () => dataFrame(1, Buffer.alloc(16_384)))],
    want: resetWith(flowControlError),
  },
];
