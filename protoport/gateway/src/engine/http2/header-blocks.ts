import { connectionSpecificFields, ErrorCode } from "../../http/index.ts";
import { FrameFlag, FrameType } from "./frame-numbers.ts";
import type { Frame } from "./frame-reader.ts";
import { type DecodedBlock, HpackDecoder } from "./hpack/decoder.ts";
import { ConnectionError, frameSizeError, protocolError } from "./http2-error.ts";
import type { Http2Limits } from "./http2-limits.ts";

/** A complete field block. */
export interface HeaderBlock<Head> {
  readonly streamId: number;
  /** Flags in the block's HEADERS frame. */
  readonly flags: number;
  readonly decoded: DecodedBlock<Head>;
  /** The stream dependency from the HEADERS frame. The other priority fields are ignored (RFC 9113 §5.3.2). */
  readonly dependsOn: number | undefined;
}

/** Assembles field blocks from frames and decodes the blocks (RFC 9113 §4.3, §6.2, §6.10). */
export class HeaderBlocks<Head> {
  /** Stream of the incomplete header block, or 0. Until the block is complete, only CONTINUATION is allowed. */
  streamId = 0;
  /** Time when the incomplete block started, in `performance.now()` milliseconds. */
  startedAtMs = 0;
  readonly #limits: Http2Limits;
  readonly #decoder: HpackDecoder<Head>;
  #parts: Uint8Array[] = [];
  #bytes = 0;
  #flags = 0;
  #dependsOn: number | undefined;

  constructor(limits: Http2Limits) {
    this.#limits = limits;
    this.#decoder = new HpackDecoder(limits.headerListBytes);
  }

  /**
   * Handles a HEADERS or CONTINUATION frame.
   *
   * @returns the block that this frame completes. Blocks for refused streams are also decoded, to keep the dynamic
   * tables of client and server synchronised
   * @throws ConnectionError
   */
  addFrame({ type, flags, streamId, bytes, from, length }: Frame): HeaderBlock<Head> | undefined {
    let start = from;
    let end = from + length;
    if (type === FrameType.headers) {
      if (streamId === 0) throw protocolError("HEADERS must be on a stream");
      this.#flags = flags;
      this.#dependsOn = undefined;
      if ((flags & FrameFlag.padded) !== 0) {
        if (length === 0) throw frameSizeError("HEADERS");
        end -= bytes.readUInt8(start);
        start++;
      }
      if ((flags & FrameFlag.priority) !== 0) {
        if (start + 5 > from + length) throw frameSizeError("HEADERS");
        this.#dependsOn = bytes.readUInt32BE(start) & 0x7fff_ffff;
        start += 5;
      }
      if (start > end) throw protocolError("the padding is longer than the frame payload");
      // A block in a single frame is decoded in place. Nearly all blocks consist of one frame.
      if ((flags & FrameFlag.endHeaders) !== 0) return this.#decoded(streamId, bytes, start, end);
      this.streamId = streamId;
      this.startedAtMs = performance.now();
    } else if (streamId === 0 || streamId !== this.streamId)
      throw protocolError("CONTINUATION must follow HEADERS of the same stream");
    this.#collect(bytes, start, end);
    if ((flags & FrameFlag.endHeaders) === 0) return undefined;
    const block = Buffer.concat(this.#parts, this.#bytes);
    this.#parts = [];
    this.#bytes = 0;
    this.streamId = 0;
    return this.#decoded(streamId, block, 0, block.byteLength);
  }

  #decoded(streamId: number, bytes: Buffer, from: number, to: number): HeaderBlock<Head> {
    const decoded = this.#decoder.decode(bytes, from, to);
    return { streamId, flags: this.#flags, decoded, dependsOn: this.#dependsOn };
  }

  #collect(bytes: Buffer, start: number, end: number): void {
    // A slice from node's pool would keep the pool alive until the rest of the block arrives.
    this.#parts.push(new Uint8Array(bytes.subarray(start, end)));
    this.#bytes += end - start;
    if (this.#bytes > this.#limits.headerBlockBytes || this.#parts.length > this.#limits.continuations + 1) {
      throw new ConnectionError(ErrorCode.enhanceYourCalm, "a field block is too large");
    }
  }
}

/** Returns whether a trailer section is well formed and has no pseudo-header fields (RFC 9113 §8.1). */
export function isTrailer(fields: readonly string[]): boolean {
  for (let i = 0; i < fields.length; i += 2) {
    // A pseudo-header field is not regular, because its name is not a token.
    if (!isRegularField(fields[i] ?? "", fields[i + 1] ?? "")) return false;
  }
  return true;
}

/** The first character in pseudo-header field names (§8.3). */
export const colon = 0x3a;

/** Returns whether a regular field is valid in a header or trailer section (RFC 9113 §8.2). */
export function isRegularField(name: string, value: string): boolean {
  if (!isLowerCaseToken(name) || connectionSpecificFields.has(name) || !isFieldValue(value)) return false;
  return name !== "te" || value.toLowerCase() === "trailers";
}

// Returns whether a name is a token (RFC 9110 §5.6.2) without upper-case letters, which RFC 9113 §8.2.1 forbids.
function isLowerCaseToken(text: string): boolean {
  return /^[!#$%&'*+\-.^_`|~0-9a-z]+$/.test(text);
}

// §8.2.1: no NUL, CR or LF, and no white space at either end. RFC 9110 §5.5 allows rejecting other control characters.
function isFieldValue(value: string): boolean {
  for (let at = 0; at < value.length; at++) {
    const octet = value.charCodeAt(at);
    if (octet < 0x20 ? octet !== 0x09 : octet === 0x7f) return false;
  }
  const first = value.charCodeAt(0);
  const last = value.charCodeAt(value.length - 1);
  return first !== 0x20 && first !== 0x09 && last !== 0x20 && last !== 0x09;
}
