import { AsyncResource } from "node:async_hooks";
import type { Duplex } from "node:stream";
import { type ConnectionOptions, FrameConnection } from "./connection.ts";
import type { DeadlineEffects } from "./deadlines.ts";
import { connectionPreface, FrameType, windowBytesMax } from "./frame-numbers.ts";
import type { ConnectionParts } from "./frame-rules.ts";
import { emptyTable } from "./hpack/encoder.ts";
import { ErrorCode } from "@plantstore/gateway/exchange";
import { Http2Stream, type ServeStream, type ServerStreamConnection } from "./http2-stream.ts";
import type { Http2RequestHead } from "./request-head.ts";
import { ServerDeadlines } from "./server-deadlines.ts";
import { ServerRules } from "./server-rules.ts";
import { encodeServerSettings } from "./settings.ts";

/** Options of {@link Http2Connection}. */
export interface Http2ConnectionOptions extends ConnectionOptions {
  /** Called when a request has begun, with its header. Must set the stream's receiver before it returns. */
  readonly onStream: ServeStream;
}

/**
 * The server's side of an HTTP/2 connection (RFC 9113), on a socket whose first bytes should be the preface.
 *
 * This class is the life of a connection, from our SETTINGS to the last GOAWAY; {@link ServerRules} know what frames
 * mean. Knows nothing of RPC.
 */
export class Http2Connection
  extends FrameConnection<Http2Stream, ServerRules, ServerDeadlines>
  implements ServerStreamConnection
{
  readonly #options: Http2ConnectionOptions;
  /**
   * Where each request begins: one whose frames follow those of another must not find what the other's handler has
   * entered (`AsyncLocalStorage`).
   */
  readonly #context = new AsyncResource("Http2Connection");
  #drain: "no" | "announced" | "final" = "no";

  constructor(socket: Duplex, options: Http2ConnectionOptions) {
    super(socket, options, {
      peerPreface: connectionPreface,
      preface: noPreface,
      // Tells the peer that we use no dynamic table.
      tableUpdate: emptyTable,
      settings: encodeServerSettings(options.limits),
      freesChunks: true,
    });
    this.#options = options;
  }

  /** Whether a stream is open, or the end of one has not been sent yet. */
  get busy(): boolean {
    return this.streams.open.size > 0 || this.output.waitingBytes > 0;
  }

  /** The number of open streams: each is a request. */
  get requests(): number {
    return this.streams.open.size;
  }

  /**
   * Ends the connection without losing a request that is on its way: announces the end, waits for the round trip of a
   * PING, names the last stream, and closes once all streams have ended (RFC 9113 §6.8).
   */
  drain(): void {
    if (this.#drain !== "no" || this.ended) return;
    this.#drain = "announced";
    this.goAway(windowBytesMax, ErrorCode.noError);
    this.output.frame(FrameType.ping, 0, 0, drainPing);
    this.after(drainPingTimeoutMs, () => this.#finalGoAway());
  }

  /** The same, for a connection that is old. */
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

  protected createRules(parts: ConnectionParts<Http2Stream>, streamFailed: (code: ErrorCode) => void): ServerRules {
    return new ServerRules(parts, {
      opened: (streamId, head, headTooLarge, ended) => this.#open(streamId, head, headTooLarge, ended),
      pingAcknowledged: (payload) => {
        if (payload.equals(drainPing)) this.#finalGoAway();
      },
      streamFailed,
    });
  }

  protected createDeadlines(
    parts: ConnectionParts<Http2Stream>,
    rules: ServerRules,
    effects: DeadlineEffects,
  ): ServerDeadlines {
    return new ServerDeadlines(parts, rules, effects);
  }

  protected get lastAcceptedId(): number {
    return this.streams.lastStreamId;
  }

  protected abortOpenStreams(): void {
    const lose = (): void => {
      for (const stream of this.streams.open.values()) stream.receiveReset(ErrorCode.cancel);
    };
    // Another connection's answer may close this one, to free its memory.
    this.#context.runInAsyncScope(lose);
  }

  /**
   * Incomplete requests will never be complete, and answers too large for the
   * peer's windows will never fit: both are reset. The others are answered.
   */
  protected onPeerEnd(): void {
    if (this.ended) return;
    this.#drain = "final";
    this.streams.sealed = true;
    for (const stream of this.streams.open.values()) if (!stream.remoteEnded) stream.reset(ErrorCode.cancel);
    for (const stream of this.sendFlow.finish()) stream.reset(ErrorCode.cancel);
    this.#closeIfDone();
    this.#probePeer();
  }

  #open(streamId: number, head: Http2RequestHead, headTooLarge: boolean, ended: boolean): void {
    const sendWindow = this.rules.peer.initialWindowSize;
    const { contentLength, expectsContinue } = head;
    const nowMs = this.deadlines.lastReceivedAtMs;
    const stream = new Http2Stream(this, streamId, { contentLength, ended, expectsContinue, sendWindow, nowMs });
    this.streams.open.set(streamId, stream);
    const begin = (): void => stream.begin(this.#options.onStream, head, headTooLarge);
    // A resource for each: on Node 22, what a handler enters stays in the one that it is called in.
    this.#context.runInAsyncScope(() => new AsyncResource("Http2Request").runInAsyncScope(begin));
  }

  #finalGoAway(): void {
    if (this.#drain !== "announced" || this.ended) return;
    this.#drain = "final";
    this.streams.sealed = true;
    this.goAway(this.streams.lastStreamId, ErrorCode.noError);
    this.#closeIfDone();
  }

  // A peer that has closed its socket looks the same. Only sending tells: its system resets the connection on our first
  // packet, and the next one fails.
  #probePeer(): void {
    if (this.ended) return;
    this.ping();
    this.after(probeEveryMs, () => this.#probePeer());
  }

  #closeIfDone(): void {
    if (this.#drain === "final" && this.streams.open.size === 0) this.end(this.#options.limits.stallTimeoutMs);
  }
}

const noPreface = Buffer.alloc(0);
const drainPing = Buffer.from("draining");
// Soon enough for calls that nobody waits for any more, and far above a round trip.
const probeEveryMs = 1000;
// As long as the slowest round trip worth waiting for.
const drainPingTimeoutMs = 2000;
