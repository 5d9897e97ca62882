import { ErrorCode } from "../../../src/http/exchange/index.ts";
import { frameType } from "../../../../testing/src/http/http2-frames.ts";

/** Returns the problem with the engine's output, or `undefined` if there is none. */
export function problemOf(output: Buffer): string | undefined {
  let at = 0;
  let failed = false;
  while (at < output.byteLength) {
    if (failed) return "frames follow a GOAWAY with an error";
    if (output.byteLength - at < 9) return "a frame header is truncated";
    const length = output.readUIntBE(at, 3);
    const type = output.readUInt8(at + 3);
    const streamId = output.readUInt32BE(at + 5);
    const payload = output.subarray(at + 9, at + 9 + length);
    if (payload.byteLength < length) return "a frame is truncated";
    if (length > 16_384) return "a frame is larger than 16384 bytes";
    if (type > frameType.continuation || type === frameType.pushPromise) return `a frame has type ${String(type)}`;
    if (streamId !== 0 && streamId % 2 === 0) return "a frame is on a server-initiated stream";
    if (type === frameType.goAway) {
      const code = payload.readUInt32BE(4);
      if (code > ErrorCode.http11Required) return `GOAWAY has the code ${String(code)}`;
      if (code === ErrorCode.internalError) return "the engine has sent INTERNAL_ERROR";
      failed = code !== ErrorCode.noError;
    }
    at += 9 + length;
  }
  return undefined;
}
