import { ErrorCode } from "../../../src/gateway/carriers/index.ts";
import { dataFrame, frame, frameFlag, frameType, resetFrame } from "../carriers/http2-frames.ts";
import { ending, type FrameRow } from "./http2-stream-rows.ts";
import { begun, getBlock, goAwayWith, hold, settingFrame, uint32, whole, windowUpdateFrame } from "./http2-requests.ts";

const { endStream, endHeaders, padded, priority, ack } = frameFlag;
const { protocolError, flowControlError, streamClosed, frameSizeError, compressionError } = ErrorCode;
const text = (of: string): Buffer => Buffer.from(of, "latin1");

/** What is wrong with the connection: it ends. */
export const connectionRows: readonly FrameRow[] = [
  ...ending(goAwayWith(frameSizeError), {
    "§4.2: a frame that is too large": [begun(1), dataFrame(1, Buffer.alloc(16_385))],
    "§6.1: padded DATA without its length": [begun(1), frame(frameType.data, padded, 1)],
    "§6.2: padded HEADERS without its length": [frame(frameType.headers, endHeaders | padded, 1)],
    "§6.2: HEADERS whose priority is cut short": [frame(frameType.headers, endHeaders | priority, 1, uint32(0))],
    "§6.3: PRIORITY of a wrong size on an idle stream": [frame(frameType.priority, 0, 1, uint32(1))],
    "§6.4: RST_STREAM of a wrong size": [begun(1), frame(frameType.resetStream, 0, 1, Buffer.alloc(3))],
    "§6.5: SETTINGS of a wrong size": [frame(frameType.settings, 0, 0, Buffer.alloc(7))],
    "§6.5: an acknowledgement with settings": [frame(frameType.settings, ack, 0, Buffer.alloc(6))],
    "§6.7: PING of a wrong size": [frame(frameType.ping, 0, 0, Buffer.alloc(7))],
    "§6.8: GOAWAY of a wrong size": [frame(frameType.goAway, 0, 0, Buffer.alloc(7))],
    "§6.9: WINDOW_UPDATE of a wrong size": [frame(frameType.windowUpdate, 0, 0, Buffer.alloc(3))],
  }),
  ...ending(goAwayWith(compressionError), {
    "§4.3: a header block that is no HPACK": [frame(frameType.headers, endHeaders | endStream, 1, text("\xbe"))],
  }),
  ...ending(goAwayWith(protocolError), {
    "§4.3: a frame of another stream inside a header block": [
      frame(frameType.headers, endStream, 1, getBlock),
      whole(3),
    ],
    "§4.3: a frame of no stream inside a header block": [
      frame(frameType.headers, endStream, 1, getBlock),
      frame(frameType.ping, 0, 0, Buffer.alloc(8)),
    ],
    "§4.3: an unknown frame inside a header block": [
      frame(frameType.headers, endStream, 1, getBlock),
      frame(0x16, 0, 0),
    ],
    "§5.1: DATA on an idle stream": [dataFrame(1, text("x"))],
    "§5.1: RST_STREAM on an idle stream": [resetFrame(1, 8)],
    "§5.1: WINDOW_UPDATE on an idle stream": [windowUpdateFrame(1, 1)],
    "§5.1: DATA on a stream of the server's": [begun(5), dataFrame(2, text("x"))],
    "§5.1.1: a stream with an even number": [whole(2)],
    "§6.1: DATA on no stream": [dataFrame(0, text("x"))],
    "§6.1: padding as long as its frame": [begun(1), frame(frameType.data, padded, 1, text("\x04abc"))],
    "§6.2: HEADERS on no stream": [frame(frameType.headers, endHeaders, 0, getBlock)],
    "§6.2: padding longer than HEADERS": [frame(frameType.headers, endHeaders | padded, 1, text("\x10abc"))],
    "§6.3: PRIORITY on no stream": [frame(frameType.priority, 0, 0, Buffer.alloc(5))],
    "§6.3: PRIORITY of an idle stream that depends on itself": [
      frame(frameType.priority, 0, 3, Buffer.concat([uint32(3), Buffer.of(0)])),
    ],
    "§6.4: RST_STREAM on no stream": [resetFrame(0, 8)],
    "§6.5: SETTINGS on a stream": [frame(frameType.settings, 0, 1)],
    "§6.5.2: ENABLE_PUSH of 2": [settingFrame(2, 2)],
    "§6.5.2: a largest frame below 2^14": [settingFrame(5, 16_383)],
    "§6.5.2: a largest frame above 2^24-1": [settingFrame(5, 2 ** 24)],
    "§6.7: PING on a stream": [frame(frameType.ping, 0, 1, Buffer.alloc(8))],
    "§6.8: GOAWAY on a stream": [frame(frameType.goAway, 0, 1, Buffer.alloc(8))],
    "§6.9: WINDOW_UPDATE of nothing": [windowUpdateFrame(0, 0)],
    "§6.10: CONTINUATION of nothing": [frame(frameType.continuation, endHeaders, 1, getBlock)],
    "§6.10: CONTINUATION of a block that is complete": [begun(1), frame(frameType.continuation, endHeaders, 1)],
    "§6.10: CONTINUATION on another stream": [
      frame(frameType.headers, endStream, 1, getBlock),
      frame(frameType.continuation, endHeaders, 3),
    ],
    "§6.10: CONTINUATION on no stream": [frame(frameType.continuation, endHeaders, 0)],
    "§8.4: a push of the client's": [frame(frameType.pushPromise, endHeaders, 1, uint32(2))],
  }),
  ...ending(goAwayWith(streamClosed), {
    "§5.1: DATA on a stream that both have closed": [begun(1), resetFrame(1, 8), dataFrame(1, text("x"))],
    "§5.1: HEADERS on a stream that was reset": [begun(1), resetFrame(1, 8), whole(1)],
    "§5.1.1: a stream below one that was used": [begun(5), whole(3)],
  }),
  ...ending(goAwayWith(flowControlError), {
    "§6.5.2: an initial window above 2^31-1": [settingFrame(4, 2 ** 31)],
    "§6.9.2: an initial window that makes one too large": [
      begun(1),
      windowUpdateFrame(1, 2 ** 31 - 65_536),
      settingFrame(4, 65_536),
    ],
    "§6.9.1: the connection's window above 2^31-1": [windowUpdateFrame(0, 2 ** 31 - 1)],
    "§6.9.1: more DATA than the connection's window": [
      begun(1, hold),
      begun(3, hold),
      ...[1, 3].flatMap((id) => Array.from({ length: 4 }, () => dataFrame(id, Buffer.alloc(16_383)))),
      dataFrame(3, Buffer.alloc(3)),
      dataFrame(1, text("12345678")),
    ],
  }),
];
