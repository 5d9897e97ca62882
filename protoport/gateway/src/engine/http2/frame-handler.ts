import { ErrorCode, noBytes } from "../../http/index.ts";
import { type Backlog } from "../backlog.ts";
import type { FloodGuard } from "./flood-guard.ts";
import { FrameFlag, FrameType } from "./frame-numbers.ts";
import type { Frame, FrameReceiver } from "./frame-reader.ts";
import { type HeaderBlock, HeaderBlocks } from "./header-blocks.ts";
import { ConnectionError, frameSizeError, protocolError } from "./http2-error.ts";
import type { Http2Limits } from "./http2-limits.ts";
import type { Output } from "./output.ts";
import type { ReceiveFlow, SendFlow, SendingStream } from "./flow-control.ts";
import type { PeerSettings } from "./settings.ts";
import type { IdentifiedStream, StreamTable } from "./stream-table.ts";

/** The stream members that {@link FrameHandler} uses. */
export interface HandledStream extends SendingStream, IdentifiedStream {
  readonly remoteEnded: boolean;
  /**
   * Handles a DATA frame of `length` bytes including padding.
   *
   * @returns an error code if the frame is invalid and was not passed to the receiver
   */
  receive(piece: Uint8Array, length: number, last: boolean): ErrorCode | undefined;
  /** Closes the stream, drops the stream's queue and notifies the receiver. */
  receiveReset(code: number): void;
}

/** The parts of a connection that {@link FrameHandler} uses. */
export interface ConnectionParts<Stream extends IdentifiedStream> {
  readonly limits: Http2Limits;
  readonly output: Output;
  readonly backlog: Backlog;
  readonly guard: FloodGuard;
  readonly streams: StreamTable<Stream>;
  readonly sendFlow: SendFlow;
  readonly receiveFlow: ReceiveFlow;
}

/** Callbacks for the events that {@link FrameHandler} reports to a connection. */
export interface FrameCallbacks {
  /** Called when the peer has acknowledged our PING. */
  pingAcknowledged(payload: Buffer): void;
  /** Called when a stream was refused, or reset because of a peer error (§5.4.2). */
  streamFailed(code: ErrorCode): void;
}

/**
 * Handles frames by the rules in RFC 9113 §6 that apply to clients and servers. Rejects frames that are not allowed.
 * Subclasses handle header sections and GOAWAY.
 *
 * A stream error resets the stream and is counted. A connection error is thrown (§5.4).
 */
export abstract class FrameHandler<Stream extends HandledStream, Head> implements FrameReceiver {
  readonly peer: PeerSettings;
  protected readonly parts: ConnectionParts<Stream>;
  protected settingsAcknowledged = false;
  readonly #callbacks: FrameCallbacks;
  readonly #blocks: HeaderBlocks<Head>;
  #settingsReceived = false;

  constructor(parts: ConnectionParts<Stream>, peer: PeerSettings, callbacks: FrameCallbacks) {
    this.parts = parts;
    this.peer = peer;
    this.#callbacks = callbacks;
    this.#blocks = new HeaderBlocks(parts.limits);
  }

  /** §6.2, §8.1: handles a complete header or trailer section. @param stream - `undefined` unless the stream is open */
  protected abstract handleSection(stream: Stream | undefined, block: HeaderBlock<Head>): void;

  /** §6.8: handles a well-formed GOAWAY. */
  protected abstract handleGoAway(lastStreamId: number, code: number): void;

  /** Handles RST_STREAM on an open stream. */
  protected abstract handleStreamReset(stream: Stream, code: number): void;

  /** Called after the peer's SETTINGS were applied and acknowledged. */
  protected abstract settingsApplied(): void;

  /** Whether the peer has sent SETTINGS and acknowledged ours. */
  get settingsExchanged(): boolean {
    // An acknowledgement before the peer's SETTINGS is rejected, so this flag covers both frames.
    return this.settingsAcknowledged;
  }

  /** Time when the incomplete field block started, or `undefined` if no field block is incomplete. */
  get blockStartedAtMs(): number | undefined {
    return this.#blocks.streamId === 0 ? undefined : this.#blocks.startedAtMs;
  }

  /** @throws ConnectionError */
  onFrame(frame: Frame): void {
    const { type, flags } = frame;
    if (!this.#settingsReceived && (type !== FrameType.settings || (flags & FrameFlag.ack) !== 0)) {
      throw protocolError("the first frame must be SETTINGS");
    }
    // §4.3: other frames are not allowed between the frames of a field block.
    if (this.#blocks.streamId !== 0 && type !== FrameType.continuation) {
      throw protocolError("only CONTINUATION may follow an incomplete field block");
    }
    switch (type) {
      case FrameType.data:
        return this.#handleData(frame);
      case FrameType.headers:
      case FrameType.continuation: {
        const block = this.#blocks.addFrame(frame);
        if (block !== undefined) this.handleSection(this.parts.streams.open.get(block.streamId), block);
        return;
      }
      case FrameType.priority:
        return this.#handlePriority(frame);
      case FrameType.rstStream:
        return this.#handleReset(frame);
      case FrameType.settings:
        return this.#handleSettings(frame);
      case FrameType.pushPromise:
        // §8.4: clients cannot push, and our SETTINGS forbid servers to push.
        throw protocolError("PUSH_PROMISE is not allowed");
      case FrameType.ping:
        return this.#handlePing(frame);
      case FrameType.goAway:
        return this.#parseGoAway(frame);
      case FrameType.windowUpdate:
        return this.#handleWindowUpdate(frame);
      default:
        // §4.1: frames with unknown types are ignored.
        this.parts.guard.count("ignoredFrames");
    }
  }

  /** Handles a DATA frame (§6.1). */
  #handleData(frame: Frame): void {
    const { guard, streams, receiveFlow } = this.parts;
    const { flags, streamId, bytes, from, length } = frame;
    if (streamId === 0) throw protocolError("DATA must be on a stream");
    const bodyBytes = length - paddingOf(frame);
    const endStream = (flags & FrameFlag.endStream) !== 0;
    if (bodyBytes > 0) guard.filledDataFrames++;
    else guard.count("emptyData");
    receiveFlow.take(length);
    const stream = streams.open.get(streamId);
    if (stream === undefined || stream.remoteEnded) {
      receiveFlow.credit(length);
      // A DATA frame is counted once, even if the frame has arrived in several chunks.
      return frame.continued ? undefined : this.onFrameAfterEnd(stream, streamId);
    }
    const start = (flags & FrameFlag.padded) === 0 ? from : from + 1;
    const error = stream.receive(bytes.subarray(start, start + bodyBytes), length, endStream);
    if (error !== undefined) this.refuse(stream, error);
  }

  /** Handles a frame on a stream that is closed or that the peer has ended (§5.1). */
  protected onFrameAfterEnd(stream: Stream | undefined, streamId: number): void {
    if (stream !== undefined) return this.refuse(stream, ErrorCode.streamClosed);
    const absence = this.parts.streams.absenceOf(streamId);
    if (absence === "idle") throw protocolError("the stream is idle");
    if (absence === "closed") throw new ConnectionError(ErrorCode.streamClosed, "the stream is closed");
    this.parts.guard.count("ignoredFrames");
  }

  /** Resets a stream because of a peer error. */
  protected refuse(stream: Stream, code: ErrorCode): void {
    stream.reset(code);
    this.#callbacks.streamFailed(code);
    this.parts.guard.count("resets");
  }

  /** §6.3: PRIORITY has no effect, but must be well formed. */
  #handlePriority({ streamId, bytes, from, length }: Frame): void {
    const { guard, streams } = this.parts;
    if (streamId === 0) throw protocolError("PRIORITY must be on a stream");
    guard.count("ignoredFrames");
    if (length === 5 && (bytes.readUInt32BE(from) & 0x7fff_ffff) !== streamId) return;
    const error = length === 5 ? protocolError("a stream cannot depend on itself") : frameSizeError("PRIORITY");
    const stream = streams.open.get(streamId);
    // §5.4.2: an idle stream cannot be reset, so the error closes the connection.
    if (stream === undefined) throw error;
    this.refuse(stream, error.code);
  }

  /** Handles a RST_STREAM frame (§6.4). */
  #handleReset({ streamId, bytes, from, length }: Frame): void {
    const { guard, streams } = this.parts;
    if (length !== 4) throw frameSizeError("RST_STREAM");
    const stream = streams.open.get(streamId);
    if (stream === undefined) {
      guard.count("ignoredFrames");
      return this.onLateStreamFrame(streamId);
    }
    this.handleStreamReset(stream, bytes.readUInt32BE(from));
  }

  /** §5.1: RST_STREAM and WINDOW_UPDATE may arrive after the stream was closed, but not on an idle stream. */
  protected onLateStreamFrame(streamId: number): void {
    if (this.parts.streams.absenceOf(streamId) === "idle") throw protocolError("the stream is idle");
  }

  /** Handles a SETTINGS frame (§6.5). */
  #handleSettings({ flags, streamId, bytes, from, length }: Frame): void {
    const { guard, output, sendFlow, streams } = this.parts;
    if (streamId !== 0) throw protocolError("SETTINGS must be on stream 0");
    guard.count("settings");
    if ((flags & FrameFlag.ack) !== 0) {
      if (length !== 0) throw frameSizeError("SETTINGS");
      this.settingsAcknowledged = true;
      return;
    }
    this.#settingsReceived = true;
    const previous = this.peer.initialWindowSize;
    this.peer.apply(bytes, from, length);
    const difference = this.peer.initialWindowSize - previous;
    output.frame(FrameType.settings, FrameFlag.ack, 0, noBytes);
    if (difference !== 0) sendFlow.changeInitialWindow(streams.open.values(), difference);
    this.settingsApplied();
  }

  /** Handles a PING frame (§6.7). */
  #handlePing({ flags, streamId, bytes, from, length }: Frame): void {
    if (streamId !== 0) throw protocolError("PING must be on stream 0");
    if (length !== 8) throw frameSizeError("PING");
    this.parts.guard.count("pings");
    const payload = bytes.subarray(from, from + 8);
    if ((flags & FrameFlag.ack) !== 0) this.#callbacks.pingAcknowledged(payload);
    else this.parts.output.frame(FrameType.ping, FrameFlag.ack, 0, payload);
  }

  /** Parses a GOAWAY frame (§6.8). */
  #parseGoAway({ streamId, bytes, from, length }: Frame): void {
    if (streamId !== 0) throw protocolError("GOAWAY must be on stream 0");
    if (length < 8) throw frameSizeError("GOAWAY");
    this.parts.guard.count("ignoredFrames");
    this.handleGoAway(bytes.readUInt32BE(from) & 0x7fff_ffff, bytes.readUInt32BE(from + 4));
  }

  /** Handles a WINDOW_UPDATE frame (§6.9). */
  #handleWindowUpdate({ streamId, bytes, from, length }: Frame): void {
    const { guard, sendFlow, streams } = this.parts;
    if (length !== 4) throw frameSizeError("WINDOW_UPDATE");
    const increment = bytes.readUInt32BE(from) & 0x7fff_ffff;
    guard.count("windowUpdates");
    if (streamId === 0) {
      if (increment === 0) throw protocolError("WINDOW_UPDATE must have an increment above 0");
      return sendFlow.grow(increment);
    }
    const stream = streams.open.get(streamId);
    if (stream === undefined) return this.onLateStreamFrame(streamId);
    if (increment === 0) return this.refuse(stream, ErrorCode.protocolError);
    if (!sendFlow.growStream(stream, increment)) this.refuse(stream, ErrorCode.flowControlError);
  }
}

/** Returns the number of padding bytes in a frame, including the length byte (§6.1). */
function paddingOf({ flags, bytes, from, length }: Frame): number {
  if ((flags & FrameFlag.padded) === 0) return 0;
  if (length === 0) throw frameSizeError("DATA");
  const padding = bytes.readUInt8(from) + 1;
  if (padding > length) throw protocolError("the padding is longer than the frame payload");
  return padding;
}
