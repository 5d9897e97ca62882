import { ErrorCode } from "../../../src/gateway/http2/index.ts";
import { dataFrame, frame, frameFlag, frameType, resetFrame } from "../carriers/http2-frames.ts";
import type { FrameRow } from "./http2-stream-rows.ts";
import { begun, getBlock, goAwayWith, hold, settingFrame, uint32, whole, windowUpdateFrame } from "./http2-requests.ts";

const { endStream, endHeaders, padded, priority, ack } = frameFlag;
const { protocolError, flowControlError, streamClosed, frameSizeError, compressionError } = ErrorCode;
const text = (of: string): Buffer => Buffer.from(of, "latin1");

/** What is wrong with the connection: it ends. */
export const connectionRows: readonly FrameRow[] = [
  {
    name: "§4.2: a frame that is too large",
    sent: [begun(1), dataFrame(1, Buffer.alloc(16_385))],
    want: goAwayWith(frameSizeError),
  },
  {
    name: "§4.3: a header block that is no HPACK",
    sent: [frame(frameType.headers, endHeaders | endStream, 1, text("\xbe"))],
    want: goAwayWith(compressionError),
  },
  {
    name: "§4.3: a frame of another stream inside a header block",
    sent: [frame(frameType.headers, endStream, 1, getBlock), whole(3)],
    want: goAwayWith(protocolError),
  },
  {
    name: "§4.3: a frame of no stream inside a header block",
    sent: [frame(frameType.headers, endStream, 1, getBlock), frame(frameType.ping, 0, 0, Buffer.alloc(8))],
    want: goAwayWith(protocolError),
  },
  {
    name: "§4.3: an unknown frame inside a header block",
    sent: [frame(frameType.headers, endStream, 1, getBlock), frame(0x16, 0, 0)],
    want: goAwayWith(protocolError),
  },
  { name: "§5.1: DATA on an idle stream", sent: [dataFrame(1, text("x"))], want: goAwayWith(protocolError) },
  { name: "§5.1: RST_STREAM on an idle stream", sent: [resetFrame(1, 8)], want: goAwayWith(protocolError) },
  { name: "§5.1: WINDOW_UPDATE on an idle stream", sent: [windowUpdateFrame(1, 1)], want: goAwayWith(protocolError) },
  {
    name: "§5.1: DATA on a stream of the server's",
    sent: [begun(5), dataFrame(2, text("x"))],
    want: goAwayWith(protocolError),
  },
  {
    name: "§5.1: DATA on a stream that both have closed",
    sent: [begun(1), resetFrame(1, 8), dataFrame(1, text("x"))],
    want: goAwayWith(streamClosed),
  },
  {
    name: "§5.1: HEADERS on a stream that was reset",
    sent: [begun(1), resetFrame(1, 8), whole(1)],
    want: goAwayWith(streamClosed),
  },
  { name: "§5.1.1: a stream with an even number", sent: [whole(2)], want: goAwayWith(protocolError) },
  { name: "§5.1.1: a stream below one that was used", sent: [begun(5), whole(3)], want: goAwayWith(streamClosed) },
  { name: "§6.1: DATA on no stream", sent: [dataFrame(0, text("x"))], want: goAwayWith(protocolError) },
  {
    name: "§6.1: padding as long as its frame",
    sent: [begun(1), frame(frameType.data, padded, 1, text("\x04abc"))],
    want: goAwayWith(protocolError),
  },
  {
    name: "§6.1: padded DATA without its length",
    sent: [begun(1), frame(frameType.data, padded, 1)],
    want: goAwayWith(frameSizeError),
  },
  {
    name: "§6.2: HEADERS on no stream",
    sent: [frame(frameType.headers, endHeaders, 0, getBlock)],
    want: goAwayWith(protocolError),
  },
  {
    name: "§6.2: padding longer than HEADERS",
    sent: [frame(frameType.headers, endHeaders | padded, 1, text("\x10abc"))],
    want: goAwayWith(protocolError),
  },
  {
    name: "§6.2: padded HEADERS without its length",
    sent: [frame(frameType.headers, endHeaders | padded, 1)],
    want: goAwayWith(frameSizeError),
  },
  {
    name: "§6.2: HEADERS whose priority is cut short",
    sent: [frame(frameType.headers, endHeaders | priority, 1, uint32(0))],
    want: goAwayWith(frameSizeError),
  },
  {
    name: "§6.3: PRIORITY on no stream",
    sent: [frame(frameType.priority, 0, 0, Buffer.alloc(5))],
    want: goAwayWith(protocolError),
  },
  {
    name: "§6.3: PRIORITY of an idle stream that depends on itself",
    sent: [frame(frameType.priority, 0, 3, Buffer.concat([uint32(3), Buffer.of(0)]))],
    want: goAwayWith(protocolError),
  },
  {
    name: "§6.3: PRIORITY of a wrong size on an idle stream",
    sent: [frame(frameType.priority, 0, 1, Buffer.alloc(4))],
    want: goAwayWith(frameSizeError),
  },
  { name: "§6.4: RST_STREAM on no stream", sent: [resetFrame(0, 8)], want: goAwayWith(protocolError) },
  {
    name: "§6.4: RST_STREAM of a wrong size",
    sent: [begun(1), frame(frameType.resetStream, 0, 1, Buffer.alloc(3))],
    want: goAwayWith(frameSizeError),
  },
  { name: "§6.5: SETTINGS on a stream", sent: [frame(frameType.settings, 0, 1)], want: goAwayWith(protocolError) },
  {
    name: "§6.5: SETTINGS of a wrong size",
    sent: [frame(frameType.settings, 0, 0, Buffer.alloc(7))],
    want: goAwayWith(frameSizeError),
  },
  {
    name: "§6.5: an acknowledgement with settings",
    sent: [frame(frameType.settings, ack, 0, Buffer.alloc(6))],
    want: goAwayWith(frameSizeError),
  },
  { name: "§6.5.2: ENABLE_PUSH of 2", sent: [settingFrame(2, 2)], want: goAwayWith(protocolError) },
  {
    name: "§6.5.2: an initial window above 2^31-1",
    sent: [settingFrame(4, 2 ** 31)],
    want: goAwayWith(flowControlError),
  },
  { name: "§6.5.2: a largest frame below 2^14", sent: [settingFrame(5, 16_383)], want: goAwayWith(protocolError) },
  { name: "§6.5.2: a largest frame above 2^24-1", sent: [settingFrame(5, 2 ** 24)], want: goAwayWith(protocolError) },
  {
    name: "§6.9.2: an initial window that makes one too large",
    sent: [begun(1), windowUpdateFrame(1, 2 ** 31 - 65_536), settingFrame(4, 65_536)],
    want: goAwayWith(flowControlError),
  },
  {
    name: "§6.7: PING on a stream",
    sent: [frame(frameType.ping, 0, 1, Buffer.alloc(8))],
    want: goAwayWith(protocolError),
  },
  {
    name: "§6.7: PING of a wrong size",
    sent: [frame(frameType.ping, 0, 0, Buffer.alloc(7))],
    want: goAwayWith(frameSizeError),
  },
  {
    name: "§6.8: GOAWAY on a stream",
    sent: [frame(frameType.goAway, 0, 1, Buffer.alloc(8))],
    want: goAwayWith(protocolError),
  },
  {
    name: "§6.8: GOAWAY of a wrong size",
    sent: [frame(frameType.goAway, 0, 0, Buffer.alloc(7))],
    want: goAwayWith(frameSizeError),
  },
  {
    name: "§6.9: WINDOW_UPDATE of a wrong size",
    sent: [frame(frameType.windowUpdate, 0, 0, Buffer.alloc(3))],
    want: goAwayWith(frameSizeError),
  },
  { name: "§6.9: WINDOW_UPDATE of nothing", sent: [windowUpdateFrame(0, 0)], want: goAwayWith(protocolError) },
  {
    name: "§6.9.1: the connection's window above 2^31-1",
    sent: [windowUpdateFrame(0, 2 ** 31 - 1)],
    want: goAwayWith(flowControlError),
  },
  {
    name: "§6.9.1: more DATA than the connection's window",
    sent: [
      begun(1, hold),
      begun(3, hold),
      ...[1, 3].flatMap((id) => Array.from({ length: 4 }, () => dataFrame(id, Buffer.alloc(16_383)))),
      dataFrame(3, Buffer.alloc(3)),
      dataFrame(1, text("12345678")),
    ],
    want: goAwayWith(flowControlError),
  },
  {
    name: "§6.10: CONTINUATION of nothing",
    sent: [frame(frameType.continuation, endHeaders, 1, getBlock)],
    want: goAwayWith(protocolError),
  },
  {
    name: "§6.10: CONTINUATION of a block that is complete",
    sent: [begun(1), frame(frameType.continuation, endHeaders, 1)],
    want: goAwayWith(protocolError),
  },
  {
    name: "§6.10: CONTINUATION on another stream",
    sent: [frame(frameType.headers, endStream, 1, getBlock), frame(frameType.continuation, endHeaders, 3)],
    want: goAwayWith(protocolError),
  },
  {
    name: "§6.10: CONTINUATION on no stream",
    sent: [frame(frameType.continuation, endHeaders, 0)],
    want: goAwayWith(protocolError),
  },
  {
    name: "§8.4: a push of the client's",
    sent: [frame(frameType.pushPromise, endHeaders, 1, uint32(2))],
    want: goAwayWith(protocolError),
  },
];
