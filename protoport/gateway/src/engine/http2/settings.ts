import {
  maxFrameBytes,
  headerTableBytesInitial,
  SettingId,
  windowBytesInitial,
  maxWindowBytes,
} from "./frame-numbers.ts";
import { ErrorCode } from "../../http/index.ts";
import { ConnectionError } from "./http2-error.ts";
import type { Http2Limits } from "./http2-limits.ts";

/** Encodes a server's SETTINGS that differ from the initial values in RFC 9113 §6.5.2. */
export function encodeServerSettings(limits: Http2Limits): Buffer {
  return encodeSettings([
    [SettingId.maxConcurrentStreams, limits.concurrentStreams],
    [SettingId.initialWindowSize, limits.streamWindowBytes],
    [SettingId.maxHeaderListSize, limits.headerListBytes],
  ]);
}

/** Encodes a client's SETTINGS, which disable server push (§8.4). */
export function encodeClientSettings(limits: Http2Limits): Buffer {
  return encodeSettings([
    [SettingId.enablePush, 0],
    [SettingId.initialWindowSize, limits.streamWindowBytes],
    [SettingId.maxHeaderListSize, limits.headerListBytes],
  ]);
}

function encodeSettings(settings: readonly (readonly [id: number, value: number])[]): Buffer {
  const bytes = Buffer.alloc(settings.length * 6);
  for (const [at, [id, value]] of settings.entries()) {
    bytes.writeUInt16BE(id, at * 6);
    bytes.writeUInt32BE(value, at * 6 + 2);
  }
  return bytes;
}

/** The peer's SETTINGS, which limit our frames. SETTINGS_MAX_FRAME_SIZE is ignored, as our frames are small. */
export class PeerSettings {
  initialWindowSize: number = windowBytesInitial;
  /** Size in bytes of the dynamic table in the peer's decoder. Our server does not use the table. */
  headerTableBytes: number = headerTableBytesInitial;
  /** Maximum number of bytes in a field list that the peer accepts (§6.5.2). */
  headerListBytes: number = Number.POSITIVE_INFINITY;
  /** Maximum number of concurrent streams that we may open. Only clients open streams. */
  concurrentStreams: number = Number.POSITIVE_INFINITY;
  readonly #maxPush: number;

  /** @param maxPush - the highest ENABLE_PUSH value that this peer may send, which is 0 for a server (§6.5.2) */
  constructor(maxPush: 0 | 1) {
    this.#maxPush = maxPush;
  }

  /** Applies the settings in a frame. @throws ConnectionError for a wrong length or value (RFC 9113 §6.5, §6.5.2) */
  apply(bytes: Buffer, from: number, length: number): void {
    if (length % 6 !== 0) throw new ConnectionError(ErrorCode.frameSizeError, "the SETTINGS frame has a wrong length");
    for (let at = from; at < from + length; at += 6) {
      const id = bytes.readUInt16BE(at);
      const value = bytes.readUInt32BE(at + 2);
      if (id === SettingId.initialWindowSize) {
        if (value > maxWindowBytes)
          throw new ConnectionError(ErrorCode.flowControlError, "SETTINGS_INITIAL_WINDOW_SIZE is too large");
        this.initialWindowSize = value;
      } else if (id === SettingId.headerTableSize) this.headerTableBytes = value;
      else if (id === SettingId.maxHeaderListSize) this.headerListBytes = value;
      else if (id === SettingId.maxConcurrentStreams) this.concurrentStreams = value;
      else if (id === SettingId.enablePush && value > this.#maxPush) {
        throw new ConnectionError(
          ErrorCode.protocolError,
          "SETTINGS_ENABLE_PUSH has a value that this peer may not send",
        );
      } else if (id === SettingId.maxFrameSize && (value < maxFrameBytes || value > 0xff_ffff)) {
        throw new ConnectionError(ErrorCode.protocolError, "SETTINGS_MAX_FRAME_SIZE is out of range");
      }
    }
  }
}
