import { AsyncResource } from "node:async_hooks";
import type { Duplex } from "node:stream";
import { ErrorCode, noBytes } from "../../http/index.ts";
import { type ConnectionOptions, FrameConnection } from "./connection.ts";
import { type ConnectionParts, type FrameCallbacks, FrameHandler } from "./frame-handler.ts";
import { connectionPreface, FrameFlag, FrameType, maxWindowBytes } from "./frame-numbers.ts";
import { type HeaderBlock, isTrailer } from "./header-blocks.ts";
import { emptyTable } from "./hpack/encoder.ts";
import { checkIntervalFor, type DeadlineCallbacks, Http2Deadlines } from "./http2-deadlines.ts";
import { protocolError } from "./http2-error.ts";
import { acceptedBlockBytes } from "./http2-limits.ts";
import { Http2Stream, type ServerStreamConnection, type ServeStream } from "./http2-stream.ts";
import { type Http2RequestHead, readRequestHead } from "./request-head.ts";
import { encodeServerSettings, PeerSettings } from "./settings.ts";

interface Http2ConnectionOptions extends ConnectionOptions {
  /** Called with each request's header. The function must set the stream's receiver before it returns. */
  readonly onStream: ServeStream;
}

/**
 * An HTTP/2 server connection (RFC 9113) on a socket. The preface has not been read yet.
 *
 * This class opens, drains and closes the connection, and {@link ServerFrameHandler} handles the frames.
 */
export class Http2Connection
  extends FrameConnection<Http2Stream, ServerFrameHandler, ServerDeadlines>
  implements ServerStreamConnection
{
  readonly #options: Http2ConnectionOptions;
  /** Each request starts in this context, so that it does not inherit the `AsyncLocalStorage` of another handler. */
  readonly #context = new AsyncResource("Http2Connection");
  #drain: "no" | "announced" | "final" = "no";

  constructor(socket: Duplex, options: Http2ConnectionOptions) {
    super(socket, options, {
      peerPreface: connectionPreface,
      preface: noPreface,
      // Our first field block signals that we do not use a dynamic table.
      tableUpdate: emptyTable,
      settings: encodeServerSettings(options.limits),
      freesChunks: true,
    });
    this.#options = options;
  }

  /** Whether a stream is open or output is unsent. */
  get busy(): boolean {
    return this.streams.open.size > 0 || this.output.bufferedBytes > 0;
  }

  /** Number of open streams. Each stream is a request. */
  get requests(): number {
    return this.streams.open.size;
  }

  /**
   * Closes the connection gracefully (RFC 9113 §6.8). A PING after the first GOAWAY ensures that requests in flight are
   * not lost. The second GOAWAY names the last stream. The connection closes when all streams have closed.
   */
  drain(): void {
    if (this.#drain !== "no" || this.isClosing) return;
    this.#drain = "announced";
    this.goAway(maxWindowBytes, ErrorCode.noError);
    this.output.frame(FrameType.ping, 0, 0, drainPing);
    this.startTimer(drainPingTimeoutMs, () => this.#finalGoAway());
  }

  /** Drains a connection that has reached its maximum age. */
  retire(): void {
    this.drain();
  }

  startLingering(): void {
    this.deadlines.startLingering();
  }

  override forget(streamId: number): void {
    super.forget(streamId);
    if (this.#drain === "final") this.#closeIfDone();
  }

  protected createFrameHandler(
    parts: ConnectionParts<Http2Stream>,
    streamFailed: (code: ErrorCode) => void,
  ): ServerFrameHandler {
    return new ServerFrameHandler(parts, {
      opened: (streamId, head, endStream) => this.#open(streamId, head, endStream),
      pingAcknowledged: (payload) => {
        if (payload.equals(drainPing)) this.#finalGoAway();
      },
      streamFailed,
    });
  }

  protected createDeadlines(
    parts: ConnectionParts<Http2Stream>,
    frameHandler: ServerFrameHandler,
    callbacks: DeadlineCallbacks,
  ): ServerDeadlines {
    return new ServerDeadlines(parts, frameHandler, callbacks);
  }

  protected get lastAcceptedId(): number {
    return this.streams.lastStreamId;
  }

  protected abortOpenStreams(): void {
    const abort = (): void => {
      for (const stream of this.streams.open.values()) stream.receiveReset(ErrorCode.cancel);
    };
    // Another connection may close this one to free memory, so this code may run in that connection's context.
    this.#context.runInAsyncScope(abort);
  }

  // Resets streams that can no longer complete: incomplete requests, and responses that do not fit into the peer's
  // windows. Other responses are still sent.
  protected onPeerEnd(): void {
    if (this.isClosing) return;
    this.#drain = "final";
    this.streams.goAwaySent = true;
    for (const stream of this.streams.open.values()) if (!stream.remoteEnded) stream.reset(ErrorCode.cancel);
    for (const stream of this.sendFlow.finish()) stream.reset(ErrorCode.cancel);
    this.#closeIfDone();
    this.#probePeer();
  }

  #open(streamId: number, head: Http2RequestHead, endStream: boolean): void {
    const sendWindow = this.frameHandler.peer.initialWindowSize;
    const { contentLength, expectsContinue } = head;
    const nowMs = this.deadlines.lastReceivedAtMs;
    const stream = new Http2Stream(this, streamId, { contentLength, endStream, expectsContinue, sendWindow, nowMs });
    this.streams.open.add(stream);
    const begin = (): void => stream.begin(this.#options.onStream, head);
    // Each request gets a separate AsyncResource. On Node 22, a store that a handler sets with `enterWith` stays in the
    // resource in which the handler was called.
    this.#context.runInAsyncScope(() => new AsyncResource("Http2Request").runInAsyncScope(begin));
  }

  #finalGoAway(): void {
    if (this.#drain !== "announced" || this.isClosing) return;
    this.#drain = "final";
    this.streams.goAwaySent = true;
    this.goAway(this.streams.lastStreamId, ErrorCode.noError);
    this.#closeIfDone();
  }

  // A peer that has closed its socket completely resets the connection on our first packet, and the next write fails.
  #probePeer(): void {
    if (this.isClosing) return;
    this.ping();
    this.startTimer(probeIntervalMs, () => this.#probePeer());
  }

  #closeIfDone(): void {
    if (this.#drain === "final" && this.streams.open.size === 0) this.shutDown(this.#options.limits.stallTimeoutMs);
  }
}

const noPreface = Buffer.alloc(0);
const drainPing = Buffer.from("draining");
// Probing every second cancels the calls of a disconnected peer early. One second is far above a round trip.
const probeIntervalMs = 1000;
// No usable connection has a round trip above two seconds.
const drainPingTimeoutMs = 2000;

/** Callbacks for the events that {@link ServerFrameHandler} reports to a connection. */
interface ServerCallbacks extends FrameCallbacks {
  /** Called with each request's header. `endStream` is true if the request has no body. */
  opened(streamId: number, head: Http2RequestHead, endStream: boolean): void;
}

/** Handles a client's frames. A header section is a request, and GOAWAY has no effect. */
class ServerFrameHandler extends FrameHandler<Http2Stream, Http2RequestHead> {
  readonly #callbacks: ServerCallbacks;

  constructor(parts: ConnectionParts<Http2Stream>, callbacks: ServerCallbacks) {
    super(parts, new PeerSettings(1), callbacks);
    this.#callbacks = callbacks;
  }

  /** §6.2, §8.1: handles a request's header section or, on an open stream, the trailer section. */
  protected handleSection(stream: Http2Stream | undefined, block: HeaderBlock<Http2RequestHead>): void {
    const { streams } = this.parts;
    if (stream !== undefined) return this.#handleTrailer(stream, block);
    // §5.1.1: client-initiated streams have odd identifiers, each higher than the previous one.
    if (block.streamId % 2 === 0) throw protocolError("a client-initiated stream identifier must be odd");
    if (block.streamId > streams.lastStreamId && !streams.goAwaySent) this.#handleRequest(block);
    else this.onFrameAfterEnd(undefined, block.streamId);
  }

  /** Ignores GOAWAY, because servers open no streams and the client's streams continue. */
  protected handleGoAway(): void {}

  protected handleStreamReset(stream: Http2Stream, code: number): void {
    const { guard, limits } = this.parts;
    stream.receiveReset(code);
    // Late resets are not counted, because the number of open streams limits late resets.
    if (stream.respondedAtMs === 0 && performance.now() - stream.openedAtMs < limits.rapidResetMs)
      guard.count(stream.headSent ? "resetsAfterHead" : "resets");
  }

  protected settingsApplied(): void {
    const { headerListBytes } = this.peer;
    const announcedBytes = Number.isFinite(headerListBytes) ? headerListBytes : 0;
    this.parts.output.maxBlockBytes = Math.max(acceptedBlockBytes, announcedBytes);
  }

  #handleTrailer(stream: Http2Stream, { flags, decoded, streamId }: HeaderBlock<Http2RequestHead>): void {
    if (stream.remoteEnded) return this.onFrameAfterEnd(stream, streamId);
    const endStream = (flags & FrameFlag.endStream) !== 0;
    const wellFormed = endStream && isTrailer(decoded.fields);
    const error = wellFormed ? stream.receive(noBytes, 0, true) : ErrorCode.protocolError;
    if (error !== undefined) this.refuse(stream, error);
  }

  #handleRequest({ streamId, flags, decoded, dependsOn }: HeaderBlock<Http2RequestHead>): void {
    const { guard, limits, streams, sendFlow } = this.parts;
    streams.lastStreamId = streamId;
    guard.openedStreams++;
    // The parsed head is cached, because clients repeat field blocks.
    const head = (decoded.head ??= readRequestHead(decoded.fields, decoded.listBytes));
    const endStream = (flags & FrameFlag.endStream) !== 0;
    // §8.1.1: Content-Length must match the body, and a request with END_STREAM has no body.
    const hasWrongLength = endStream && head?.contentLength !== undefined && head.contentLength > 0;
    if (head === undefined || hasWrongLength || dependsOn === streamId) {
      this.#rejectNew(streamId, ErrorCode.protocolError);
      guard.count("resets");
    } else if (streams.open.size >= limits.concurrentStreams) {
      this.#rejectNew(streamId, ErrorCode.refusedStream);
      // A refused stream counts as a reset only after the client has acknowledged our stream limit (§5.1.2).
      if (this.settingsAcknowledged) guard.count("resets");
    } else if (sendFlow.queuedBytes >= limits.queuedBytes) this.#rejectNew(streamId, ErrorCode.refusedStream);
    else this.#callbacks.opened(streamId, head, endStream);
  }

  /** Resets a stream that was not opened. */
  #rejectNew(streamId: number, code: ErrorCode): void {
    this.parts.output.numbers(FrameType.rstStream, streamId, code);
    this.parts.streams.rememberReset(streamId);
    this.#callbacks.streamFailed(code);
  }
}

/** Deadlines on a server connection, including deadlines for request bodies and for bytes after a response. */
class ServerDeadlines extends Http2Deadlines<Http2Stream> {
  /** Timer that runs while a client may still send a request body after the complete response. */
  #lingerTimer: NodeJS.Timeout | undefined;

  /** Called when a response is complete and the client may still send for a while. */
  startLingering(): void {
    const { lingerMs } = this.parts.limits;
    // The short linger deadline has a separate timer, so that idle connections are not checked too often.
    this.#lingerTimer ??= setInterval(() => this.#checkLingering(), checkIntervalFor(lingerMs)).unref();
  }

  override stop(): void {
    super.stop();
    clearInterval(this.#lingerTimer);
  }

  protected override checkSideTimeouts(nowMs: number): void {
    const { streams, limits } = this.parts;
    for (const stream of streams.open.values()) {
      if (stream.receiver?.body?.isAwaited !== true) continue;
      if (nowMs - stream.openedAtMs > limits.requestTimeoutMs) stream.reset(ErrorCode.cancel);
    }
  }

  #checkLingering(): void {
    const nowMs = performance.now();
    const { streams, limits } = this.parts;
    let lingering = 0;
    for (const stream of streams.open.values()) {
      if (stream.respondedAtMs === 0) continue;
      // After a complete response, a server may reset the stream with NO_ERROR (RFC 9113 §8.1).
      if (nowMs - stream.respondedAtMs >= limits.lingerMs) stream.reset(ErrorCode.noError);
      else lingering += 1;
    }
    if (lingering > 0) return;
    clearInterval(this.#lingerTimer);
    this.#lingerTimer = undefined;
  }
}
