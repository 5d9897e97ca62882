import { AsyncResource } from "node:async_hooks";
import type { Duplex } from "node:stream";
import { type ConnectionOptions, FrameConnection } from "./connection.ts";
import type { DeadlineCallbacks } from "./http2-deadlines.ts";
import { connectionPreface, FrameType, windowBytesMax } from "./frame-numbers.ts";
import type { ConnectionParts } from "./frame-handler.ts";
import { emptyTable } from "./hpack/encoder.ts";
import { ErrorCode } from "../../http/index.ts";
import { Http2Stream, type ServeStream, type ServerStreamConnection } from "./http2-stream.ts";
import type { Http2RequestHead } from "./request-head.ts";
import { ServerDeadlines } from "./server-deadlines.ts";
import { ServerFrameHandler } from "./server-frame-handler.ts";
import { encodeServerSettings } from "./settings.ts";

/** Options for {@link Http2Connection}. */
export interface Http2ConnectionOptions extends ConnectionOptions {
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
    this.goAway(windowBytesMax, ErrorCode.noError);
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
