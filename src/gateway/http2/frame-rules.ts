import type { FloodGuard } from "./flood-guard.ts";
import { Flag, FrameType } from "./frame.ts";
import { type HeaderBlock, HeaderBlocks } from "./header-blocks.ts";
import { ConnectionError, ErrorCode, frameSizeError, protocolError } from "./http2-error.ts";
import type { Http2Limits } from "./http2-limits.ts";
import type { Http2Stream } from "./http2-stream.ts";
import type { Output } from "./output.ts";
import type { ReceiveFlow } from "./receive-flow.ts";
import { isTrailer, type RequestHead, readRequestHead } from "./request-head.ts";
import type { SendFlow } from "./send-flow.ts";
import { PeerSettings } from "./settings.ts";
import type { StreamTable } from "./stream-table.ts";

/** What the frames of all streams share. */
export interface ConnectionParts {
  readonly limits: Http2Limits;
  readonly output: Output;
  readonly guard: FloodGuard;
  readonly streams: StreamTable;
  readonly sendFlow: SendFlow;
  readonly receiveFlow: ReceiveFlow;
}

/** What frames bring about. */
export interface FrameEffects {
  /** A request begins; with `ended` it is complete. */
  opened(streamId: number, head: RequestHead, headTooLarge: boolean, ended: boolean): void;
  /** Resets an open stream. */
  sendReset(stream: Http2Stream, code: ErrorCode): void;
  /** A stream is over. */
  forget(stream: Http2Stream): void;
  /** Our PING came back. */
  ponged(payload: Buffer): void;
}

/**
 * What each frame of a client means (RFC 9113 §6), and what is done about one that has no place.
 *
 * An error of a stream resets that stream and is counted; an error of the connection is thrown (§5.4).
 */
export class FrameRules {
  readonly peer: PeerSettings = new PeerSettings();
  readonly #parts: ConnectionParts;
  readonly #effects: FrameEffects;
  readonly #blocks: HeaderBlocks;
  #settingsReceived = false;
  #settingsAcknowledged = false;

  constructor(parts: ConnectionParts, effects: FrameEffects) {
    this.#parts = parts;
    this.#effects = effects;
    this.#blocks = new HeaderBlocks(parts.limits);
  }

  /** Whether both sides know each other's settings. */
  get settled(): boolean {
    return this.#settingsReceived && this.#settingsAcknowledged;
  }

  /** Whether a header block has begun and is not complete. */
  get blockOpen(): boolean {
    return this.#blocks.open;
  }

  /** Takes a frame whose payload lies at `from` in `bytes`. @throws ConnectionError */
  take(type: number, flags: number, streamId: number, bytes: Buffer, from: number, length: number): void {
    if (!this.#settingsReceived && (type !== FrameType.settings || (flags & Flag.ack) !== 0)) {
      throw protocolError("the first frame is not SETTINGS");
    }
    // §4.3: the frames of a header block stand together.
    if (this.#blocks.open && type !== FrameType.continuation) throw protocolError("a header block is interrupted");
    switch (type) {
      case FrameType.data:
        return this.#takeData(flags, streamId, bytes, from, length);
      case FrameType.headers:
      case FrameType.continuation: {
        const block = this.#blocks.take(type, flags, streamId, bytes, from, length);
        if (block !== undefined) this.#takeBlock(block);
        return;
      }
      case FrameType.priority:
        return this.#takePriority(streamId, bytes, from, length);
      case FrameType.rstStream:
        return this.#takeReset(streamId, bytes, from, length);
      case FrameType.settings:
        return this.#takeSettings(flags, streamId, bytes, from, length);
      case FrameType.pushPromise:
        // §8.4: only servers push.
        throw protocolError("a client cannot push");
      case FrameType.ping:
        return this.#takePing(flags, streamId, bytes, from, length);
      case FrameType.goAway:
        return this.#takeGoAway(streamId, length);
      case FrameType.windowUpdate:
        return this.#takeWindowUpdate(streamId, bytes, from, length);
      default:
        // §4.1: of a type that we do not know.
        this.#parts.guard.count("ignoredFrames");
    }
  }

  /** §6.1 */
  #takeData(flags: number, streamId: number, bytes: Buffer, from: number, length: number): void {
    const { guard, streams, receiveFlow } = this.#parts;
    if (streamId === 0) throw protocolError("DATA is on no stream");
    const padding = paddingOf(flags, bytes, from, length);
    const bodyBytes = length - padding;
    const endStream = (flags & Flag.endStream) !== 0;
    if (bodyBytes === 0 && !endStream) guard.count("emptyData");
    receiveFlow.take(length);
    const stream = streams.get(streamId);
    if (stream === undefined || stream.remoteEnded) {
      receiveFlow.credit(length);
      return this.#takeLate(stream, streamId);
    }
    stream.heldBytes += length;
    stream.receiveWindow -= length;
    if (stream.receiveWindow < 0) return this.#refuse(stream, ErrorCode.flowControlError);
    // Padding counts for flow control, and is used as soon as it is here.
    if (padding > 0) stream.consumed(padding);
    stream.receivedBytes += bodyBytes;
    if (!isLengthPossible(stream, endStream)) return this.#refuse(stream, ErrorCode.protocolError);
    stream.remoteEnded = endStream;
    const start = (flags & Flag.padded) === 0 ? from : from + 1;
    if (bodyBytes > 0) stream.receive(bytes.subarray(start, start + bodyBytes));
    if (endStream) this.#endRemote(stream);
  }

  #endRemote(stream: Http2Stream): void {
    if (stream.closed) return;
    stream.receiveEnd();
    if (stream.localEnded && stream.queuedBytes === 0 && !stream.closed) this.#effects.forget(stream);
  }

  /** A frame for a stream whose peer had no right to send it any more (§5.1). */
  #takeLate(stream: Http2Stream | undefined, streamId: number): void {
    if (stream !== undefined) return this.#refuse(stream, ErrorCode.streamClosed);
    const absence = this.#parts.streams.absenceOf(streamId);
    if (absence === "idle") throw protocolError("the stream is idle");
    if (absence === "closed") throw new ConnectionError(ErrorCode.streamClosed, "the stream is closed");
    this.#parts.guard.count("ignoredFrames");
  }

  /** Resets a stream because of what the peer did. */
  #refuse(stream: Http2Stream, code: ErrorCode): void {
    this.#effects.sendReset(stream, code);
    this.#parts.guard.count("resets");
  }

  /** §6.2, §8.1: a request or, on a stream that is open, its trailer section. */
  #takeBlock(block: HeaderBlock): void {
    const { streams } = this.#parts;
    const stream = streams.get(block.streamId);
    if (stream !== undefined) return this.#takeTrailer(stream, block);
    // §5.1.1: a client's streams have odd numbers, each higher than the one before.
    if (block.streamId % 2 === 0) throw protocolError("a client's stream has an even number");
    if (streams.absenceOf(block.streamId) === "idle") this.#takeRequest(block);
    else this.#takeLate(undefined, block.streamId);
  }

  #takeTrailer(stream: Http2Stream, { flags, decoded, streamId }: HeaderBlock): void {
    if (stream.remoteEnded) return this.#takeLate(stream, streamId);
    const endStream = (flags & Flag.endStream) !== 0;
    const wellFormed = endStream && isTrailer(decoded.fields);
    if (!wellFormed || !isLengthPossible(stream, true)) return this.#refuse(stream, ErrorCode.protocolError);
    stream.remoteEnded = true;
    this.#endRemote(stream);
  }

  #takeRequest({ streamId, flags, decoded, dependsOn }: HeaderBlock): void {
    const { guard, limits, streams, sendFlow } = this.#parts;
    streams.use(streamId);
    guard.allow("ignoredFrames", ignoredFramesPerStream);
    // A block that is sent again and again is taken apart once.
    const head = (decoded.head ??= readRequestHead(decoded.fields));
    const ended = (flags & Flag.endStream) !== 0;
    // §8.1.1: a length that is announced must be that of the body, here of none.
    const contradicts = ended && head?.contentLength !== undefined && head.contentLength > 0;
    if (head === undefined || contradicts || dependsOn === streamId) {
      this.#rejectNew(streamId, ErrorCode.protocolError);
      guard.count("resets");
    } else if (streams.size >= limits.concurrentStreams) {
      this.#rejectNew(streamId, ErrorCode.refusedStream);
      // §5.1.2: a peer that does not know our limit yet cannot keep to it.
      guard.count(this.#settingsAcknowledged ? "resets" : "ignoredFrames");
    } else if (sendFlow.full) {
      this.#rejectNew(streamId, ErrorCode.refusedStream);
      guard.count("ignoredFrames");
    } else this.#effects.opened(streamId, head, decoded.listBytes > limits.headerListBytes, ended);
  }

  /** Resets a stream for which nothing has been done. */
  #rejectNew(streamId: number, code: ErrorCode): void {
    this.#parts.output.numbers(FrameType.rstStream, streamId, code);
    this.#parts.streams.rememberReset(streamId);
  }

  /** §6.3: takes no part in anything, but must be well formed. */
  #takePriority(streamId: number, bytes: Buffer, from: number, length: number): void {
    const { guard, streams } = this.#parts;
    if (streamId === 0) throw protocolError("PRIORITY is on no stream");
    guard.count("ignoredFrames");
    const dependsOnItself = length === 5 && (bytes.readUInt32BE(from) & 0x7fff_ffff) === streamId;
    if (length === 5 && !dependsOnItself) return;
    const error = dependsOnItself ? protocolError("a stream depends on itself") : frameSizeError("PRIORITY");
    const stream = streams.get(streamId);
    // §5.4.2: an idle stream cannot be reset, so it is an error of the connection.
    if (stream === undefined) throw error;
    this.#refuse(stream, error.code);
  }

  /** §6.4 */
  #takeReset(streamId: number, bytes: Buffer, from: number, length: number): void {
    const { guard, streams } = this.#parts;
    if (length !== 4) throw frameSizeError("RST_STREAM");
    const stream = streams.get(streamId);
    if (stream === undefined) {
      guard.count("ignoredFrames");
      return this.#takeCrossing(streamId);
    }
    const complete = stream.localEnded && stream.queuedBytes === 0;
    this.#effects.forget(stream);
    stream.receiveReset(bytes.readUInt32BE(from));
    if (!complete) guard.count("resets");
  }

  /** §5.1: RST_STREAM and WINDOW_UPDATE may cross what closed their stream. */
  #takeCrossing(streamId: number): void {
    if (this.#parts.streams.absenceOf(streamId) === "idle") throw protocolError("the stream is idle");
  }

  /** §6.5 */
  #takeSettings(flags: number, streamId: number, bytes: Buffer, from: number, length: number): void {
    const { guard, output, sendFlow, streams } = this.#parts;
    if (streamId !== 0) throw protocolError("SETTINGS is on a stream");
    guard.count("settings");
    if ((flags & Flag.ack) !== 0) {
      if (length !== 0) throw frameSizeError("SETTINGS");
      this.#settingsAcknowledged = true;
      return;
    }
    this.#settingsReceived = true;
    const before = this.peer.initialWindowSize;
    this.peer.take(bytes, from, length);
    const difference = this.peer.initialWindowSize - before;
    output.frame(FrameType.settings, Flag.ack, 0, noBytes);
    if (difference !== 0) sendFlow.shift(streams.values(), difference);
  }

  /** §6.7 */
  #takePing(flags: number, streamId: number, bytes: Buffer, from: number, length: number): void {
    if (streamId !== 0) throw protocolError("PING is on a stream");
    if (length !== 8) throw frameSizeError("PING");
    this.#parts.guard.count("pings");
    const payload = bytes.subarray(from, from + 8);
    if ((flags & Flag.ack) !== 0) this.#effects.ponged(payload);
    else this.#parts.output.frame(FrameType.ping, Flag.ack, 0, payload);
  }

  /** §6.8: the peer takes no more streams, of which we open none; its own go on. */
  #takeGoAway(streamId: number, length: number): void {
    if (streamId !== 0) throw protocolError("GOAWAY is on a stream");
    if (length < 8) throw frameSizeError("GOAWAY");
    this.#parts.guard.count("ignoredFrames");
  }

  /** §6.9 */
  #takeWindowUpdate(streamId: number, bytes: Buffer, from: number, length: number): void {
    const { guard, sendFlow, streams } = this.#parts;
    if (length !== 4) throw frameSizeError("WINDOW_UPDATE");
    const increment = bytes.readUInt32BE(from) & 0x7fff_ffff;
    guard.count("windowUpdates");
    if (streamId === 0) {
      if (increment === 0) throw protocolError("WINDOW_UPDATE of nothing");
      return sendFlow.grow(increment);
    }
    const stream = streams.get(streamId);
    if (stream === undefined) return this.#takeCrossing(streamId);
    if (increment === 0) return this.#refuse(stream, ErrorCode.protocolError);
    if (!sendFlow.growStream(stream, increment)) this.#refuse(stream, ErrorCode.flowControlError);
  }
}

const noBytes = new Uint8Array(0);
// Browsers send PRIORITY_UPDATE with each request, and some clients a RST_STREAM behind each answer.
const ignoredFramesPerStream = 2;

/** §6.1: how much of a frame is padding, its length included; there must be room for it. */
function paddingOf(flags: number, bytes: Buffer, from: number, length: number): number {
  if ((flags & Flag.padded) === 0) return 0;
  if (length === 0) throw frameSizeError("DATA");
  const padding = (bytes[from] as number) + 1;
  if (padding > length) throw protocolError("the padding is longer than its frame");
  return padding;
}

/** §8.1.1: a body is as long as it was said to be, or the request is malformed. */
function isLengthPossible({ head, receivedBytes }: Http2Stream, ended: boolean): boolean {
  const { contentLength } = head;
  if (contentLength === undefined) return true;
  return ended ? receivedBytes === contentLength : receivedBytes <= contentLength;
}
