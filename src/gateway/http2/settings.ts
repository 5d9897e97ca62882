import { frameBytesMax, SettingId, windowBytesInitial, windowBytesMax } from "./frame-numbers.ts";
import { ConnectionError, ErrorCode } from "./http2-error.ts";
import type { Http2Limits } from "./http2-limits.ts";

/** Returns our SETTINGS: what differs from the initial values of RFC 9113 §6.5.2. */
export function encodeOwnSettings(limits: Http2Limits): Buffer {
  const settings: readonly (readonly [id: number, value: number])[] = [
    [SettingId.maxConcurrentStreams, limits.concurrentStreams],
    [SettingId.initialWindowSize, limits.streamWindowBytes],
    [SettingId.maxHeaderListSize, limits.headerListBytes],
  ];
  const bytes = Buffer.alloc(settings.length * 6);
  for (const [at, [id, value]] of settings.entries()) {
    bytes.writeUInt16BE(id, at * 6);
    bytes.writeUInt32BE(value, at * 6 + 2);
  }
  return bytes;
}

/**
 * The settings of the peer that affect what we send.
 *
 * Not its header table's size, because we use none, nor its largest frame, because ours fit the smallest limit.
 */
export class PeerSettings {
  initialWindowSize: number = windowBytesInitial;

  /** Takes over the settings of a frame. @throws ConnectionError for a wrong size or value (RFC 9113 §6.5, §6.5.2) */
  take(bytes: Buffer, from: number, length: number): void {
    if (length % 6 !== 0) throw new ConnectionError(ErrorCode.frameSizeError, "SETTINGS has a wrong size");
    for (let at = from; at < from + length; at += 6) {
      const id = bytes.readUInt16BE(at);
      const value = bytes.readUInt32BE(at + 2);
      if (id === SettingId.initialWindowSize) {
        if (value > windowBytesMax)
          throw new ConnectionError(ErrorCode.flowControlError, "the initial window is too large");
        this.initialWindowSize = value;
      } else if (id === SettingId.enablePush && value > 1) {
        throw new ConnectionError(ErrorCode.protocolError, "ENABLE_PUSH is neither 0 nor 1");
      } else if (id === SettingId.maxFrameSize && (value < frameBytesMax || value > 0xff_ffff)) {
        throw new ConnectionError(ErrorCode.protocolError, "MAX_FRAME_SIZE is out of range");
      }
    }
  }
}
