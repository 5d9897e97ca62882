import { type Backlog, noBytes } from "../carriers/index.ts";
import type { FloodGuard } from "./flood-guard.ts";
import { FrameFlag, FrameType } from "./frame-numbers.ts";
import type { Frame, FrameReceiver } from "./frame-reader.ts";
import { type HeaderBlock, HeaderBlocks } from "./header-blocks.ts";
import { ConnectionError, ErrorCode, frameSizeError, protocolError } from "./http2-error.ts";
import type { Http2Limits } from "./http2-limits.ts";
import type { Http2Stream } from "./http2-stream.ts";
import type { Output } from "./output.ts";
import type { ReceiveFlow } from "./receive-flow.ts";
import { isTrailer, type Http2RequestHead, readRequestHead } from "./request-head.ts";
import type { SendFlow } from "./send-flow.ts";
import { PeerSettings } from "./settings.ts";
import type { StreamTable } from "./stream-table.ts";

/** The parts of a connection that frames act on. */
export interface ConnectionParts {
  readonly limits: Http2Limits;
  readonly output: Output;
  readonly backlog: Backlog;
  readonly guard: FloodGuard;
  readonly streams: StreamTable;
  readonly sendFlow: SendFlow;
  readonly receiveFlow: ReceiveFlow;
}

/** The reports of {@link FrameRules} to a connection. */
export interface FrameEffects {
  /** Called when a request has begun; with `ended` it is complete. */
  opened(streamId: number, head: Http2RequestHead, headTooLarge: boolean, ended: boolean): void;
  /** Called when the peer has acknowledged our PING. */
  ponged(payload: Buffer): void;
  /** Called when a stream was reset because of a mistake of the peer, or refused (§5.4.2). */
  streamFailed(code: ErrorCode): void;
}

/**
 * Acts on each frame of a client by the rules of RFC 9113 §6, and on frames that are not allowed.
 *
 * A stream error resets the stream and is counted; a connection error is thrown (§5.4).
 */
export class FrameRules implements FrameReceiver {
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

  /** Whether each side has received the other's settings, and ours are acknowledged. */
  get settingsExchanged(): boolean {
    return this.#settingsReceived && this.#settingsAcknowledged;
  }

  /** When the header block began that is not complete; `undefined` if there is none. */
  get blockBegunAtMs(): number | undefined {
    return this.#blocks.streamId === 0 ? undefined : this.#blocks.begunAtMs;
  }

  /** @throws ConnectionError */
  take(frame: Frame): void {
    const { type, flags } = frame;
    if (!this.#settingsReceived && (type !== FrameType.settings || (flags & FrameFlag.ack) !== 0)) {
      throw protocolError("the first frame is not SETTINGS");
    }
    // §4.3: no other frame may come between the frames of a header block.
    if (this.#blocks.streamId !== 0 && type !== FrameType.continuation) {
      throw protocolError("a header block is interrupted");
    }
    switch (type) {
      case FrameType.data:
        return this.#takeData(frame);
      case FrameType.headers:
      case FrameType.continuation: {
        const block = this.#blocks.take(frame);
        if (block !== undefined) this.#takeBlock(block);
        return;
      }
      case FrameType.priority:
        return this.#takePriority(frame);
      case FrameType.rstStream:
        return this.#takeReset(frame);
      case FrameType.settings:
        return this.#takeSettings(frame);
      case FrameType.pushPromise:
        // §8.4: only servers push.
        throw protocolError("a client cannot push");
      case FrameType.ping:
        return this.#takePing(frame);
      case FrameType.goAway:
        return this.#takeGoAway(frame);
      case FrameType.windowUpdate:
        return this.#takeWindowUpdate(frame);
      default:
        // §4.1: frames of unknown types are ignored.
        this.#parts.guard.count("ignoredFrames");
    }
  }

  /** §6.1 */
  #takeData(frame: Frame): void {
    const { guard, streams, receiveFlow } = this.#parts;
    const { flags, streamId, bytes, from, length } = frame;
    if (streamId === 0) throw protocolError("DATA is on no stream");
    const bodyBytes = length - paddingOf(frame);
    const endStream = (flags & FrameFlag.endStream) !== 0;
    if (bodyBytes === 0 && !endStream) guard.count("emptyData");
    receiveFlow.take(length);
    const stream = streams.open.get(streamId);
    if (stream === undefined || stream.remoteEnded) {
      receiveFlow.credit(length);
      // A frame counts once, however the network has cut it.
      return frame.continued ? undefined : this.#takeLate(stream, streamId);
    }
    const start = (flags & FrameFlag.padded) === 0 ? from : from + 1;
    const error = stream.receive(bytes.subarray(start, start + bodyBytes), length, endStream);
    if (error !== undefined) this.#refuse(stream, error);
  }

  /** Handles a frame on a stream that the peer may no longer send on (§5.1). */
  #takeLate(stream: Http2Stream | undefined, streamId: number): void {
    if (stream !== undefined) return this.#refuse(stream, ErrorCode.streamClosed);
    const absence = this.#parts.streams.absenceOf(streamId);
    if (absence === "idle") throw protocolError("the stream is idle");
    if (absence === "closed") throw new ConnectionError(ErrorCode.streamClosed, "the stream is closed");
    this.#parts.guard.count("ignoredFrames");
  }

  /** Resets a stream because of a mistake of the peer. */
  #refuse(stream: Http2Stream, code: ErrorCode): void {
    stream.reset(code);
    this.#effects.streamFailed(code);
    this.#parts.guard.count("resets");
  }

  /** §6.2, §8.1: a request or, on an open stream, its trailer section. */
  #takeBlock(block: HeaderBlock): void {
    const { streams } = this.#parts;
    const stream = streams.open.get(block.streamId);
    if (stream !== undefined) return this.#takeTrailer(stream, block);
    // §5.1.1: a client's streams have odd numbers, each higher than the one before.
    if (block.streamId % 2 === 0) throw protocolError("a client's stream has an even number");
    if (block.streamId > streams.lastStreamId && !streams.sealed) this.#takeRequest(block);
    else this.#takeLate(undefined, block.streamId);
  }

  #takeTrailer(stream: Http2Stream, { flags, decoded, streamId }: HeaderBlock): void {
    if (stream.remoteEnded) return this.#takeLate(stream, streamId);
    const endStream = (flags & FrameFlag.endStream) !== 0;
    const wellFormed = endStream && isTrailer(decoded.fields);
    const error = wellFormed ? stream.receive(noBytes, 0, true) : ErrorCode.protocolError;
    if (error !== undefined) this.#refuse(stream, error);
  }

  #takeRequest({ streamId, flags, decoded, dependsOn }: HeaderBlock): void {
    const { guard, limits, streams, sendFlow } = this.#parts;
    streams.lastStreamId = streamId;
    guard.openedStreams++;
    // A block that is sent repeatedly is parsed once.
    const head = (decoded.head ??= readRequestHead(decoded.fields));
    const ended = (flags & FrameFlag.endStream) !== 0;
    // §8.1.1: an announced length must be that of the body, and this request has no body.
    const contradicts = ended && head?.contentLength !== undefined && head.contentLength > 0;
    if (head === undefined || contradicts || dependsOn === streamId) {
      this.#rejectNew(streamId, ErrorCode.protocolError);
      guard.count("resets");
    } else if (streams.open.size >= limits.concurrentStreams) {
      this.#rejectNew(streamId, ErrorCode.refusedStream);
      // §5.1.2: a peer that does not know our limit yet cannot respect it.
      if (this.#settingsAcknowledged) guard.count("resets");
    } else if (sendFlow.queuedBytes >= limits.queuedBytes) this.#rejectNew(streamId, ErrorCode.refusedStream);
    else this.#effects.opened(streamId, head, decoded.listBytes > limits.headerListBytes, ended);
  }

  /** Resets a stream for which no work has been done. */
  #rejectNew(streamId: number, code: ErrorCode): void {
    this.#parts.output.numbers(FrameType.rstStream, streamId, code);
    this.#parts.streams.rememberReset(streamId);
    this.#effects.streamFailed(code);
  }

  /** §6.3: has no effect, but must be well formed. */
  #takePriority({ streamId, bytes, from, length }: Frame): void {
    const { guard, streams } = this.#parts;
    if (streamId === 0) throw protocolError("PRIORITY is on no stream");
    guard.count("ignoredFrames");
    const dependsOnItself = length === 5 && (bytes.readUInt32BE(from) & 0x7fff_ffff) === streamId;
    if (length === 5 && !dependsOnItself) return;
    const error = dependsOnItself ? protocolError("a stream depends on itself") : frameSizeError("PRIORITY");
    const stream = streams.open.get(streamId);
    // §5.4.2: an idle stream cannot be reset, so this is a connection error.
    if (stream === undefined) throw error;
    this.#refuse(stream, error.code);
  }

  /** §6.4 */
  #takeReset({ streamId, bytes, from, length }: Frame): void {
    const { guard, limits, streams } = this.#parts;
    if (length !== 4) throw frameSizeError("RST_STREAM");
    const stream = streams.open.get(streamId);
    if (stream === undefined) {
      guard.count("ignoredFrames");
      return this.#takeCrossing(streamId);
    }
    stream.receiveReset(bytes.readUInt32BE(from));
    // A late reset is not a rapid one: there cannot be more late ones at a time than open streams.
    if (stream.answeredAtMs === 0 && performance.now() - stream.openedAtMs < limits.rapidResetMs) guard.count("resets");
  }

  /** §5.1: RST_STREAM and WINDOW_UPDATE may cross the frame that closed their stream. */
  #takeCrossing(streamId: number): void {
    if (this.#parts.streams.absenceOf(streamId) === "idle") throw protocolError("the stream is idle");
  }

  /** §6.5 */
  #takeSettings({ flags, streamId, bytes, from, length }: Frame): void {
    const { guard, output, sendFlow, streams } = this.#parts;
    if (streamId !== 0) throw protocolError("SETTINGS is on a stream");
    guard.count("settings");
    if ((flags & FrameFlag.ack) !== 0) {
      if (length !== 0) throw frameSizeError("SETTINGS");
      this.#settingsAcknowledged = true;
      return;
    }
    this.#settingsReceived = true;
    const before = this.peer.initialWindowSize;
    this.peer.take(bytes, from, length);
    const difference = this.peer.initialWindowSize - before;
    output.frame(FrameType.settings, FrameFlag.ack, 0, noBytes);
    if (difference !== 0) sendFlow.changeInitialWindow(streams.open.values(), difference);
  }

  /** §6.7 */
  #takePing({ flags, streamId, bytes, from, length }: Frame): void {
    if (streamId !== 0) throw protocolError("PING is on a stream");
    if (length !== 8) throw frameSizeError("PING");
    this.#parts.guard.count("pings");
    const payload = bytes.subarray(from, from + 8);
    if ((flags & FrameFlag.ack) !== 0) this.#effects.ponged(payload);
    else this.#parts.output.frame(FrameType.ping, FrameFlag.ack, 0, payload);
  }

  /** §6.8: the peer accepts no more streams, and we open none; its own streams go on. */
  #takeGoAway({ streamId, length }: Frame): void {
    if (streamId !== 0) throw protocolError("GOAWAY is on a stream");
    if (length < 8) throw frameSizeError("GOAWAY");
    this.#parts.guard.count("ignoredFrames");
  }

  /** §6.9 */
  #takeWindowUpdate({ streamId, bytes, from, length }: Frame): void {
    const { guard, sendFlow, streams } = this.#parts;
    if (length !== 4) throw frameSizeError("WINDOW_UPDATE");
    const increment = bytes.readUInt32BE(from) & 0x7fff_ffff;
    guard.count("windowUpdates");
    if (streamId === 0) {
      if (increment === 0) throw protocolError("WINDOW_UPDATE of 0");
      return sendFlow.grow(increment);
    }
    const stream = streams.open.get(streamId);
    if (stream === undefined) return this.#takeCrossing(streamId);
    if (increment === 0) return this.#refuse(stream, ErrorCode.protocolError);
    if (!sendFlow.growStream(stream, increment)) this.#refuse(stream, ErrorCode.flowControlError);
  }
}

/** Returns how many bytes of a frame are padding, its length byte included (§6.1). */
function paddingOf({ flags, bytes, from, length }: Frame): number {
  if ((flags & FrameFlag.padded) === 0) return 0;
  if (length === 0) throw frameSizeError("DATA");
  const padding = bytes.readUInt8(from) + 1;
  if (padding > length) throw protocolError("the padding is longer than its frame");
  return padding;
}
