import { ErrorCode } from "../../../../gateway/src/exchange/index.ts";
import { frameType } from "../../../../testing/src/carriers/http2-frames.ts";

/** Returns the problem of the engine's output; `undefined` if there is none. */
export function problemOf(reply: Buffer): string | undefined {
  let at = 0;
  let ended = false;
  while (at < reply.byteLength) {
    if (ended) return "frames follow the GOAWAY for an error";
    if (reply.byteLength - at < 9) return "a frame's head is cut short";
    const length = reply.readUIntBE(at, 3);
    const type = reply.readUInt8(at + 3);
    const streamId = reply.readUInt32BE(at + 5);
    const payload = reply.subarray(at + 9, at + 9 + length);
    if (payload.byteLength < length) return "a frame is cut short";
    if (length > 16_384) return "a frame is larger than its peer takes";
    if (type > frameType.continuation || type === frameType.pushPromise) return `a frame has type ${String(type)}`;
    if (streamId !== 0 && streamId % 2 === 0) return "a frame is on a stream of the server's";
    if (type === frameType.goAway) {
      const code = payload.readUInt32BE(4);
      if (code > ErrorCode.http11Required) return `GOAWAY has the code ${String(code)}`;
      if (code === ErrorCode.internalError) return "the engine has a fault";
      ended = code !== ErrorCode.noError;
    }
    at += 9 + length;
  }
  return undefined;
}
