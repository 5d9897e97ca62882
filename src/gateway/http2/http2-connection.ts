import type { Duplex } from "node:stream";
import { FloodGuard } from "./flood-guard.ts";
import { Flag, FrameType, windowBytesInitial, windowBytesMax } from "./frame.ts";
import { FrameReader } from "./frame-reader.ts";
import { type HeaderBlock, HeaderBlocks } from "./header-blocks.ts";
import { emptyTable } from "./hpack/encoder.ts";
import { ConnectionError, ErrorCode } from "./http2-error.ts";
import type { Http2Limits } from "./http2-limits.ts";
import { Http2Stream, type StreamCarrier } from "./http2-stream.ts";
import { Output } from "./output.ts";
import { isTrailer, readRequestHead } from "./request-head.ts";
import { encodeOwnSettings, PeerSettings } from "./settings.ts";

/** Who is told of the requests of a connection. */
export interface Http2ConnectionOptions {
  readonly limits: Http2Limits;
  /** A request has begun: its header is there. The receiver of its body is to be set before this returns. */
  readonly onStream: (stream: Http2Stream) => void;
  /** The connection is over. */
  readonly onClose: () => void;
}

/**
 * The server's side of an HTTP/2 connection (RFC 9113) on a socket whose first bytes may be the preface.
 *
 * chunk → frames → this, which keeps the state that frames of all streams share: settings, windows, the
 * header tables, which streams there are, and what the peer has done too much of. Knows nothing of what is
 * asked for.
 */
export class Http2Connection implements StreamCarrier {
  readonly #socket: Duplex;
  readonly #options: Http2ConnectionOptions;
  readonly #limits: Http2Limits;
  readonly #output: Output;
  readonly #reader: FrameReader;
  readonly #blocks: HeaderBlocks;
  readonly #guard: FloodGuard;
  readonly #peer = new PeerSettings();
  readonly #streams = new Map<number, Http2Stream>();
  readonly #blocked = new Set<Http2Stream>();
  /** Streams that we have reset, whose last frames may still be on their way. The oldest are forgotten. */
  readonly #resetByUs = new Set<number>();
  readonly #clock: NodeJS.Timeout;
  #lastStreamId = 0;
  #settingsReceived = false;
  #settingsAcknowledged = false;
  #firstBlock = true;
  sendWindow: number = windowBytesInitial;
  #receiveWindow: number;
  #uncreditedBytes = 0;
  #lastReadMs = Date.now();
  #pingSentMs = 0;
  #drain: "no" | "announced" | "final" = "no";
  #ended = false;

  constructor(socket: Duplex, options: Http2ConnectionOptions) {
    const { limits } = options;
    this.#socket = socket;
    this.#options = options;
    this.#limits = limits;
    this.#output = new Output(socket, () => this.#sendBlocked());
    this.#reader = new FrameReader((type, flags, streamId, bytes, from, length) =>
      this.#take(type, flags, streamId, bytes, from, length),
    );
    this.#blocks = new HeaderBlocks(limits);
    this.#guard = new FloodGuard(limits);
    this.#receiveWindow = Math.max(limits.connectionWindowBytes, windowBytesInitial);
    socket.on("data", (chunk: Buffer) => this.#read(chunk));
    socket.on("end", () => this.#socket.end());
    socket.on("close", () => this.#close());
    socket.on("error", ignore);
    this.#output.frame(FrameType.settings, 0, 0, encodeOwnSettings(limits));
    const extra = this.#receiveWindow - windowBytesInitial;
    if (extra > 0) this.#output.numbers(FrameType.windowUpdate, 0, extra);
    this.#clock = setInterval(() => this.#tick(), tickMs(limits));
    this.#clock.unref();
  }

  /** How many streams are open. */
  get streamsOpen(): number {
    return this.#streams.size;
  }

  /** Whether the socket has more to send than it wants. */
  get congested(): boolean {
    return this.#output.congested;
  }

  /**
   * Ends the connection without losing a request that crosses: announces it, waits for the round trip of a
   * PING, says which stream is the last, and closes once the streams have ended (RFC 9113 §6.8).
   */
  drain(): void {
    if (this.#drain !== "no" || this.#ended) return;
    this.#drain = "announced";
    this.#goAway(windowBytesMax, ErrorCode.noError);
    this.#output.frame(FrameType.ping, 0, 0, drainPing);
    setTimeout(() => this.#finalGoAway(), drainPingTimeoutMs).unref();
  }

  /** Ends the connection at once. */
  destroy(): void {
    this.#socket.destroy();
  }

  sendHeaders(streamId: number, endStream: boolean, parts: readonly Uint8Array[]): void {
    const block = this.#firstBlock ? [emptyTable, ...parts] : parts;
    this.#firstBlock = false;
    this.#output.headerBlock(streamId, endStream, block);
  }

  sendData(streamId: number, endStream: boolean, piece: Uint8Array): void {
    this.#guard.allowWindowUpdates();
    this.#output.frame(FrameType.data, endStream ? Flag.endStream : 0, streamId, piece);
  }

  sendReset(stream: Http2Stream, code: ErrorCode): void {
    this.#output.numbers(FrameType.rstStream, stream.id, code);
    this.#rememberReset(stream.id);
    this.#forget(stream);
    stream.receiver?.onReset(code);
  }

  block(stream: Http2Stream): void {
    if (stream.blockedSinceMs === 0) stream.blockedSinceMs = Date.now();
    this.#blocked.add(stream);
  }

  credit(stream: Http2Stream, bytes: number): void {
    this.#creditConnection(bytes);
    if (stream.closed || stream.remoteEnded) return;
    stream.uncreditedBytes += bytes;
    if (stream.uncreditedBytes < this.#streamWindow / 2) return;
    this.#output.numbers(FrameType.windowUpdate, stream.id, stream.uncreditedBytes);
    stream.receiveWindow += stream.uncreditedBytes;
    stream.uncreditedBytes = 0;
  }

  ended(stream: Http2Stream): void {
    if (stream.remoteEnded) this.#forget(stream);
  }

  get #streamWindow(): number {
    // Until our settings are acknowledged the peer may go by the initial value.
    return Math.max(this.#limits.streamWindowBytes, windowBytesInitial);
  }

  #read(chunk: Buffer): void {
    this.#lastReadMs = Date.now();
    if (this.#ended) return;
    try {
      this.#reader.read(chunk);
      if (this.#output.waitingBytes > this.#limits.queuedBytes) {
        throw new ConnectionError(ErrorCode.enhanceYourCalm, "too much is waiting to be taken");
      }
    } catch (error) {
      this.#fail(error);
    }
  }

  #fail(error: unknown): void {
    const code = error instanceof ConnectionError ? error.code : ErrorCode.internalError;
    this.#goAway(this.#lastStreamId, code);
    this.#end();
  }

  /** Says no more, and lets what is written out. */
  #end(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#output.flush();
    this.#socket.end();
    // A peer that does not take the rest, or goes on sending, is not waited for.
    setTimeout(() => this.#socket.destroy(), closeTimeoutMs).unref();
    this.#resetAll(ErrorCode.cancel);
  }

  #goAway(lastStreamId: number, code: ErrorCode): void {
    this.#output.numbers(FrameType.goAway, 0, lastStreamId, code);
  }

  #finalGoAway(): void {
    if (this.#drain !== "announced" || this.#ended) return;
    this.#drain = "final";
    this.#goAway(this.#lastStreamId, ErrorCode.noError);
    if (this.#streams.size === 0) this.#end();
  }

  #close(): void {
    clearInterval(this.#clock);
    this.#ended = true;
    this.#resetAll(ErrorCode.cancel);
    this.#options.onClose();
  }

  #resetAll(code: ErrorCode): void {
    for (const stream of this.#streams.values()) {
      stream.closed = true;
      stream.receiver?.onReset(code);
    }
    this.#streams.clear();
    this.#blocked.clear();
  }

  #forget(stream: Http2Stream): void {
    stream.closed = true;
    this.#streams.delete(stream.id);
    this.#blocked.delete(stream);
    if (this.#drain === "final" && this.#streams.size === 0) this.#end();
  }

  #rememberReset(streamId: number): void {
    this.#resetByUs.add(streamId);
    if (this.#resetByUs.size <= rememberedResets) return;
    for (const oldest of this.#resetByUs) {
      this.#resetByUs.delete(oldest);
      break;
    }
  }

  #take(type: number, flags: number, streamId: number, bytes: Buffer, from: number, length: number): void {
    // Behind a connection error nothing is taken any more, also not what came in the same chunk.
    if (this.#ended) return;
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
        throw protocolError("a client cannot push");
      case FrameType.ping:
        return this.#takePing(flags, streamId, bytes, from, length);
      case FrameType.goAway:
        // The peer opens no more streams; those that are open go on.
        if (streamId !== 0) throw protocolError("GOAWAY is on a stream");
        if (length < 8) throw frameSizeError("GOAWAY");
        return;
      case FrameType.windowUpdate:
        return this.#takeWindowUpdate(streamId, bytes, from, length);
      default:
        this.#guard.count("ignoredFrames");
    }
  }

  /** §6.1 */
  #takeData(flags: number, streamId: number, bytes: Buffer, from: number, length: number): void {
    if (streamId === 0) throw protocolError("DATA is on no stream");
    const { start, end } = unpad(flags, bytes, from, length);
    const endStream = (flags & Flag.endStream) !== 0;
    if (start === end && !endStream) this.#guard.count("emptyData");
    this.#receiveWindow -= length;
    if (this.#receiveWindow < 0)
      throw new ConnectionError(ErrorCode.flowControlError, "the connection window is exceeded");
    const stream = this.#streams.get(streamId);
    if (stream === undefined || stream.remoteEnded) {
      this.#creditConnection(length);
      return this.#takeLate(stream, streamId);
    }
    stream.receiveWindow -= length;
    if (stream.receiveWindow < 0) return this.#refuse(stream, ErrorCode.flowControlError);
    // Padding counts for flow control, and is used as soon as it is here.
    if (length > end - start) this.credit(stream, length - (end - start));
    stream.receivedBytes += end - start;
    const announced = stream.head.contentLength ?? stream.receivedBytes;
    if (stream.receivedBytes > announced) return this.#refuse(stream, ErrorCode.protocolError);
    if (end > start) stream.receiver?.onData(bytes.subarray(start, end));
    if (endStream) this.#endRemote(stream);
  }

  /** A frame for a stream whose peer had no right to send it any more (§5.1). */
  #takeLate(stream: Http2Stream | undefined, streamId: number): void {
    if (stream !== undefined) return this.#refuse(stream, ErrorCode.streamClosed);
    if (streamId > this.#lastStreamId) throw protocolError("the stream is idle");
    if (!this.#resetByUs.has(streamId)) throw new ConnectionError(ErrorCode.streamClosed, "the stream is closed");
  }

  #endRemote(stream: Http2Stream): void {
    if (stream.closed) return;
    // §8.1.1: a body that is not as long as it was said to be is malformed.
    const { contentLength } = stream.head;
    if (contentLength !== undefined && contentLength !== stream.receivedBytes) {
      return this.#refuse(stream, ErrorCode.protocolError);
    }
    stream.remoteEnded = true;
    stream.receiver?.onEnd();
    if (stream.localEnded && stream.queuedBytes === 0 && !stream.closed) this.#forget(stream);
  }

  /** Resets a stream because of what the peer did. */
  #refuse(stream: Http2Stream, code: ErrorCode): void {
    this.sendReset(stream, code);
    this.#guard.count("resets");
  }

  /** §6.2, §8.1: a request or, on a stream that is open, its trailer section. */
  #takeBlock({ streamId, flags, decoded, dependsOn }: HeaderBlock): void {
    const stream = this.#streams.get(streamId);
    const endStream = (flags & Flag.endStream) !== 0;
    if (stream !== undefined) {
      if (stream.remoteEnded) return this.#takeLate(stream, streamId);
      if (!endStream || !isTrailer(decoded.fields)) return this.#refuse(stream, ErrorCode.protocolError);
      return this.#endRemote(stream);
    }
    if (streamId % 2 === 0) throw protocolError("a client's stream has an even number");
    if (streamId <= this.#lastStreamId) return this.#takeLate(undefined, streamId);
    // §6.8: streams above the last one that GOAWAY named are not taken.
    if (this.#drain === "final") return;
    this.#lastStreamId = streamId;
    // A block that is sent again and again is taken apart once.
    const head = (decoded.head ??= readRequestHead(decoded.fields));
    const headTooLarge = decoded.listBytes > this.#limits.headerListBytes;
    if (head === undefined || dependsOn === streamId) return this.#refuseNew(streamId, ErrorCode.protocolError);
    if (this.#streams.size >= this.#limits.concurrentStreams) return this.#refuseExcess(streamId);
    this.#open(new Http2Stream(this, streamId, head, headTooLarge, this.#windows()), endStream);
  }

  #windows(): { readonly send: number; readonly receive: number; readonly nowMs: number } {
    return { send: this.#peer.initialWindowSize, receive: this.#streamWindow, nowMs: this.#lastReadMs };
  }

  #open(stream: Http2Stream, endStream: boolean): void {
    this.#streams.set(stream.id, stream);
    if (endStream) {
      const { contentLength } = stream.head;
      if (contentLength !== undefined && contentLength !== 0) return this.#refuse(stream, ErrorCode.protocolError);
      stream.remoteEnded = true;
    }
    this.#options.onStream(stream);
  }

  #refuseNew(streamId: number, code: ErrorCode): void {
    this.#output.numbers(FrameType.rstStream, streamId, code);
    this.#rememberReset(streamId);
    this.#guard.count("resets");
  }

  /** §5.1.2: nothing was done for the stream, so the peer may try it again. */
  #refuseExcess(streamId: number): void {
    this.#output.numbers(FrameType.rstStream, streamId, ErrorCode.refusedStream);
    this.#rememberReset(streamId);
    // A peer that does not know our limit yet cannot keep to it.
    if (this.#settingsAcknowledged) this.#guard.count("resets");
  }

  /** §6.3: takes no part in anything, but must be well formed. */
  #takePriority(streamId: number, bytes: Buffer, from: number, length: number): void {
    if (streamId === 0) throw protocolError("PRIORITY is on no stream");
    this.#guard.count("ignoredFrames");
    const stream = this.#streams.get(streamId);
    const dependsOnItself = length === 5 && (bytes.readUInt32BE(from) & 0x7fff_ffff) === streamId;
    if (length === 5 && !dependsOnItself) return;
    const code = dependsOnItself ? ErrorCode.protocolError : ErrorCode.frameSizeError;
    if (stream !== undefined) this.#refuse(stream, code);
    else this.#refuseNew(streamId, code);
  }

  /** §6.4 */
  #takeReset(streamId: number, bytes: Buffer, from: number, length: number): void {
    if (length !== 4) throw frameSizeError("RST_STREAM");
    if (streamId === 0 || streamId > this.#lastStreamId) throw protocolError("RST_STREAM is on an idle stream");
    const stream = this.#streams.get(streamId);
    if (stream === undefined) return;
    const complete = stream.localEnded && stream.queuedBytes === 0;
    this.#forget(stream);
    stream.receiver?.onReset(bytes.readUInt32BE(from));
    if (!complete) this.#guard.count("resets");
  }

  /** §6.5 */
  #takeSettings(flags: number, streamId: number, bytes: Buffer, from: number, length: number): void {
    if (streamId !== 0) throw protocolError("SETTINGS is on a stream");
    if ((flags & Flag.ack) !== 0) {
      if (length !== 0) throw frameSizeError("SETTINGS");
      this.#settingsAcknowledged = true;
      return;
    }
    this.#guard.count("settings");
    this.#settingsReceived = true;
    const before = this.#peer.initialWindowSize;
    this.#peer.take(bytes, from, length);
    const grown = this.#peer.initialWindowSize - before;
    // §6.9.2: the change holds for the streams that are open, too; a window may become negative by it.
    for (const stream of grown === 0 ? [] : this.#streams.values()) {
      stream.sendWindow += grown;
      if (stream.sendWindow > windowBytesMax) {
        throw new ConnectionError(ErrorCode.flowControlError, "a stream window is too large");
      }
    }
    this.#output.frame(FrameType.settings, Flag.ack, 0, noBytes);
    if (grown > 0) this.#sendBlocked();
  }

  /** §6.7 */
  #takePing(flags: number, streamId: number, bytes: Buffer, from: number, length: number): void {
    if (streamId !== 0) throw protocolError("PING is on a stream");
    if (length !== 8) throw frameSizeError("PING");
    if ((flags & Flag.ack) !== 0) {
      this.#pingSentMs = 0;
      if (bytes.compare(drainPing, 0, 8, from, from + 8) === 0) this.#finalGoAway();
      return;
    }
    this.#guard.count("pings");
    this.#output.frame(FrameType.ping, Flag.ack, 0, bytes.subarray(from, from + 8));
  }

  /** §6.9 */
  #takeWindowUpdate(streamId: number, bytes: Buffer, from: number, length: number): void {
    if (length !== 4) throw frameSizeError("WINDOW_UPDATE");
    const increment = bytes.readUInt32BE(from) & 0x7fff_ffff;
    this.#guard.count("windowUpdates");
    if (streamId === 0) {
      if (increment === 0) throw protocolError("WINDOW_UPDATE of nothing");
      this.sendWindow += increment;
      if (this.sendWindow > windowBytesMax)
        throw new ConnectionError(ErrorCode.flowControlError, "the window is too large");
      return this.#sendBlocked();
    }
    if (streamId > this.#lastStreamId) throw protocolError("WINDOW_UPDATE is on an idle stream");
    const stream = this.#streams.get(streamId);
    if (stream === undefined) return;
    if (increment === 0) return this.#refuse(stream, ErrorCode.protocolError);
    stream.sendWindow += increment;
    if (stream.sendWindow > windowBytesMax) return this.#refuse(stream, ErrorCode.flowControlError);
    if (stream.blockedSinceMs !== 0) this.#sendBlocked();
  }

  #creditConnection(bytes: number): void {
    this.#uncreditedBytes += bytes;
    if (this.#uncreditedBytes < this.#limits.connectionWindowBytes / 2) return;
    this.#output.numbers(FrameType.windowUpdate, 0, this.#uncreditedBytes);
    this.#receiveWindow += this.#uncreditedBytes;
    this.#uncreditedBytes = 0;
  }

  /** Goes round the streams that wait, a frame each, until the windows or the socket take no more. */
  #sendBlocked(): void {
    let progress = true;
    while (progress && this.#blocked.size > 0 && this.sendWindow > 0 && !this.congested) {
      progress = false;
      for (const stream of [...this.#blocked]) {
        if (stream.sendWindow <= 0) continue;
        progress = true;
        this.#blocked.delete(stream);
        stream.sendQueued(1);
      }
      this.#output.flush();
    }
  }

  /** What is looked at from time to time rather than clocked for each stream. */
  #tick(): void {
    const nowMs = Date.now();
    this.#guard.restart();
    for (const stream of this.#blocked) {
      if (nowMs - stream.blockedSinceMs > this.#limits.stallTimeoutMs) stream.reset(ErrorCode.cancel);
    }
    for (const stream of this.#streams.values()) {
      const owesBody = !stream.remoteEnded && nowMs - stream.openedAtMs > this.#limits.requestTimeoutMs;
      if (owesBody) stream.reset(ErrorCode.cancel);
    }
    const idleMs = nowMs - this.#lastReadMs;
    if (this.#blocks.open && idleMs > this.#limits.stallTimeoutMs)
      this.#fail(protocolError("a header block is not continued"));
    if (idleMs < this.#limits.idleTimeoutMs) return;
    if (this.#streams.size === 0) this.#fail(new ConnectionError(ErrorCode.noError, "idle"));
    else if (this.#pingSentMs === 0) {
      // Half-open connections look just like patient clients; a PING tells them apart.
      this.#pingSentMs = nowMs;
      this.#output.frame(FrameType.ping, 0, 0, aliveness);
    } else if (nowMs - this.#pingSentMs > this.#limits.stallTimeoutMs) this.#socket.destroy();
  }
}

const noBytes = new Uint8Array(0);
const drainPing = Buffer.from("draining");
const aliveness = Buffer.from("alive? \n");
// As long as the slowest round trip that is still worth waiting for.
const drainPingTimeoutMs = 2000;
// For the last frames to be taken by the peer.
const closeTimeoutMs = 1000;
// Frames of a stream that was reset come in for about a round trip; this is many of them.
const rememberedResets = 1024;

function tickMs(limits: Http2Limits): number {
  const { intervalMs, idleTimeoutMs, stallTimeoutMs, requestTimeoutMs } = limits;
  return Math.max(10, Math.min(intervalMs, idleTimeoutMs / 4, stallTimeoutMs / 4, requestTimeoutMs / 4));
}

/** §6.1: the padding of a frame, which must leave room for what it pads. */
function unpad(flags: number, bytes: Buffer, from: number, length: number): { start: number; end: number } {
  if ((flags & Flag.padded) === 0) return { start: from, end: from + length };
  const padding = bytes[from] ?? 0;
  if (length === 0 || padding >= length) throw protocolError("the padding is longer than its frame");
  return { start: from + 1, end: from + length - padding };
}

function protocolError(message: string): ConnectionError {
  return new ConnectionError(ErrorCode.protocolError, message);
}

function frameSizeError(frame: string): ConnectionError {
  return new ConnectionError(ErrorCode.frameSizeError, `${frame} has a wrong size`);
}

// An error of the socket is followed by its end, which is what counts.
function ignore(): void {}
