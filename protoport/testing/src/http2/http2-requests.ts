import type { ErrorCode } from "../../../gateway/src/http/exchange/index.ts";
import type { Http2RequestHead } from "../../../gateway/src/engine/http2/request-head.ts";
import type { Http2Stream } from "../../../gateway/src/engine/http2/http2-stream.ts";
import type { Field } from "../http/exchange.ts";
import { echo, receiving } from "./http2-engine.ts";
// oxfmt-ignore
import { frame, type Frame, frameFlag, frameType, headerBlock, headersFrame, type StreamEnd
} from "../http/http2-frames.ts";

export const getHeader: readonly Field[] = [
  [":method", "GET"],
  [":scheme", "http"],
  [":path", "/"],
  [":authority", "x"],
];

export const getBlock: Buffer = headerBlock(getHeader);
/** Returns the header for a request with a body. */
export const postHeader = (...more: readonly Field[]): Field[] => [[":method", "POST"], ...getHeader.slice(1), ...more];

export const whole = (streamId: number): Frame => headersFrame(streamId, getHeader, frameFlag.endStream);

/** Returns the header frame of a request whose body is pending. */
export const begun = (streamId: number, ...more: readonly Field[]): Frame =>
  headersFrame(streamId, postHeader(...more));

export const uint32 = (...values: readonly number[]): Buffer =>
  Buffer.from(values.flatMap((value) => [value >>> 24, value >>> 16, value >>> 8, value]));

export const settingFrame = (id: number, value: number): Frame =>
  frame(frameType.settings, 0, 0, Buffer.concat([Buffer.from([0, id]), uint32(value)]));

export const windowUpdateFrame = (streamId: number, increment: number): Frame =>
  frame(frameType.windowUpdate, 0, streamId, uint32(increment));

export const answered: StreamEnd = { kind: "responded", httpStatus: 200 };
export const resetWith = (errorCode: ErrorCode): StreamEnd => ({ kind: "reset", httpStatus: 0, errorCode });
export const goAwayWith = (errorCode: ErrorCode): StreamEnd => ({ kind: "go-away", httpStatus: 0, errorCode });
/** A field that makes {@link echoUnlessHeld} neither consume the body nor respond. */
export const hold: Field = ["hold", "1"];

/** Echoes the body, unless the request has the field {@link hold}. */
export const echoUnlessHeld = (stream: Http2Stream, { fields }: Http2RequestHead): void => {
  if (!fields.includes(hold[0])) return echo(stream);
  stream.receiver = receiving(stream, { onData: () => {} });
};
