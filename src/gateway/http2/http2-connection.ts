import { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { type Backlog, type BacklogBudget, freeChunk, freedBytesMin } from "../carriers/index.ts";
import { Deadlines } from "./deadlines.ts";
import { FloodGuard } from "./flood-guard.ts";
import { FrameType, windowBytesMax } from "./frame-numbers.ts";
import { FrameReader } from "./frame-reader.ts";
import { FrameRules } from "./frame-rules.ts";
import { ConnectionError, ErrorCode } from "./http2-error.ts";
import type { Http2Limits } from "./http2-limits.ts";
import { Http2Stream, type ServeStream, type StreamCarrier } from "./http2-stream.ts";
import { Output } from "./output.ts";
import { ReceiveFlow } from "./receive-flow.ts";
import type { Http2RequestHead } from "./request-head.ts";
import { SendFlow } from "./send-flow.ts";
import { encodeOwnSettings } from "./settings.ts";
import { StreamTable } from "./stream-table.ts";

/** What an error ends (RFC 9113 §5.4). */
export type ErrorScope = "connection" | "stream";

/** Options of {@link Http2Connection}. */
export interface Http2ConnectionOptions {
  readonly limits: Http2Limits;
  /** Counts what peers do not read; shared by all connections of a server. */
  readonly budget: BacklogBudget;
  /** Called when a request has begun, with its header. Must set the stream's receiver before it returns. */
  readonly onStream: ServeStream;
  /**
   * Called for each stream that is refused or reset because of its frames, and for each connection that is ended with
   * an error (RFC 9113 §5.4); not for a defect of ours, nor for streams that are reset because the peer is late.
   */
  readonly onError?: (scope: ErrorScope, code: ErrorCode) => void;
  /** Called when the connection is over. */
  readonly onClose: () => void;
  /**
   * Called with a defect: a stream's receiver has thrown, which resets the stream, or our own code has, which ends the
   * connection.
   */
  readonly onFault: (error: unknown) => void;
}

/**
 * The server's side of an HTTP/2 connection (RFC 9113), on a socket whose first bytes should be the preface.
 *
 * This class is the life of a connection, from our SETTINGS to the last GOAWAY; {@link FrameRules} knows what frames
 * mean. Knows nothing of RPC.
 */
export class Http2Connection implements StreamCarrier {
  readonly output: Output;
  readonly sendFlow: SendFlow;
  readonly receiveFlow: ReceiveFlow;
  readonly #socket: Duplex;
  readonly #options: Http2ConnectionOptions;
  readonly #backlog: Backlog;
  readonly #streams = new StreamTable();
  readonly #rules: FrameRules;
  readonly #reader: FrameReader;
  readonly #deadlines: Deadlines;
  /** Whether chunks are ours alone: a socket makes a buffer for each, but other streams may pass on a shared one. */
  readonly #ownsChunks: boolean;
  /** Whether something has kept a view of the chunk that is being read. */
  #chunkKept = false;
  #drain: "no" | "announced" | "final" = "no";
  #ended = false;
  /** Runs the next step of ending the connection. */
  #timer: NodeJS.Timeout | undefined;

  constructor(socket: Duplex, options: Http2ConnectionOptions) {
    const { limits, budget } = options;
    this.#socket = socket;
    this.#ownsChunks = socket instanceof Socket;
    this.#options = options;
    this.#backlog = budget.open(socket, () => this.#cut());
    this.output = new Output(socket, this.#backlog, () => this.#drained());
    this.sendFlow = new SendFlow(this.output, limits, this.#backlog);
    this.receiveFlow = new ReceiveFlow(limits, this.output);
    const { output, sendFlow, receiveFlow } = this;
    const guard = new FloodGuard(limits, output);
    const parts = { limits, output, backlog: this.#backlog, guard, streams: this.#streams, sendFlow, receiveFlow };
    this.#rules = new FrameRules(parts, {
      opened: (streamId, head, headTooLarge, ended) => this.#open(streamId, head, headTooLarge, ended),
      ponged: (payload) => {
        if (payload.equals(drainPing)) this.#finalGoAway();
      },
      streamFailed: (code) => options.onError?.("stream", code),
    });
    this.#reader = new FrameReader(this.#rules);
    this.#deadlines = new Deadlines(parts, this.#rules, {
      ping: () => output.frame(FrameType.ping, 0, 0, alivePing),
      fail: (error) => this.#fail(error),
      drain: () => this.drain(),
      destroy: () => this.destroy(),
    });
    socket.on("data", (chunk: Buffer) => this.#read(chunk));
    socket.on("end", () => this.#peerEnded());
    socket.on("close", () => this.#close());
    socket.on("error", ignore);
    this.output.frame(FrameType.settings, 0, 0, encodeOwnSettings(limits));
    this.receiveFlow.open();
  }

  /** Whether a stream is open, or the end of one has not been sent yet. */
  get busy(): boolean {
    return this.#streams.open.size > 0 || this.output.waitingBytes > 0;
  }

  /** The number of open streams: each is a request. */
  get requests(): number {
    return this.#streams.open.size;
  }

  /**
   * Ends the connection without losing a request that is on its way: announces the end, waits for the round trip of a
   * PING, names the last stream, and closes once all streams have ended (RFC 9113 §6.8).
   */
  drain(): void {
    if (this.#drain !== "no" || this.#ended) return;
    this.#drain = "announced";
    this.#goAway(windowBytesMax, ErrorCode.noError);
    this.output.frame(FrameType.ping, 0, 0, drainPing);
    this.#after(drainPingTimeoutMs, () => this.#finalGoAway());
  }

  /** The same, for a connection that is old. */
  retire(): void {
    this.drain();
  }

  /** Ends the connection at once. */
  destroy(): void {
    this.#socket.destroy();
  }

  sendReset(stream: Http2Stream, code: ErrorCode): void {
    this.output.numbers(FrameType.rstStream, stream.id, code);
    this.#streams.rememberReset(stream.id);
  }

  keepChunk(): void {
    this.#chunkKept = true;
  }

  lingers(): void {
    this.#deadlines.lingers();
  }

  forget(stream: Http2Stream): void {
    this.#streams.open.delete(stream.id);
    if (this.#drain === "final") this.#endIfDone();
  }

  faulted(error: unknown): void {
    this.#options.onFault(error);
  }

  #open(streamId: number, head: Http2RequestHead, headTooLarge: boolean, ended: boolean): void {
    const sendWindow = this.#rules.peer.initialWindowSize;
    const { contentLength, expectsContinue } = head;
    const nowMs = this.#deadlines.heardAtMs;
    const stream = new Http2Stream(this, streamId, { contentLength, ended, expectsContinue, sendWindow, nowMs });
    this.#streams.open.set(streamId, stream);
    stream.begin(this.#options.onStream, head, headTooLarge);
  }

  #read(chunk: Buffer): void {
    if (this.#ended) return;
    this.#deadlines.heardAtMs = Math.trunc(performance.now());
    this.#chunkKept = !this.#ownsChunks;
    try {
      this.#reader.read(chunk);
      if (!this.#chunkKept && chunk.byteLength >= freedBytesMin) freeChunk(chunk);
      // Anything else that the peer asks for would have to wait, too. A peer that only reads after it has written
      // everything never gets here, because what the windows allow stays below this limit.
      const { output } = this;
      if (output.congested && output.waitingBytes > this.#options.limits.unreadBytes) this.#socket.pause();
    } catch (error) {
      this.#fail(error);
    }
  }

  /** Goes on sending, because the peer has read what the socket held. */
  #drained(): void {
    this.#socket.resume();
    this.sendFlow.pump();
  }

  /** Ends the connection to make room for others. */
  #cut(): void {
    // A GOAWAY would wait behind everything else and never arrive.
    if (this.output.congested) this.destroy();
    else this.#fail(new ConnectionError(ErrorCode.enhanceYourCalm, "too much is waiting to be taken"));
  }

  /** §5.4.1: sends the reason and the last stream that was taken, and ends the connection. */
  #fail(error: unknown): void {
    if (this.#ended) return;
    const isOurs = !(error instanceof ConnectionError);
    const code = isOurs ? ErrorCode.internalError : error.code;
    this.#goAway(this.#streams.lastStreamId, code);
    this.#end(this.#options.limits.lingerMs);
    if (isOurs) this.#options.onFault(error);
    else this.#options.onError?.("connection", code);
  }

  #finalGoAway(): void {
    if (this.#drain !== "announced" || this.#ended) return;
    this.#drain = "final";
    this.#streams.sealed = true;
    this.#goAway(this.#streams.lastStreamId, ErrorCode.noError);
    this.#endIfDone();
  }

  /**
   * Called when the peer has ended its side. Incomplete requests will never be complete, and answers too large for the
   * peer's windows will never fit: both are reset. The others are answered.
   */
  #peerEnded(): void {
    if (this.#ended) return;
    this.#drain = "final";
    this.#streams.sealed = true;
    for (const stream of this.#streams.open.values()) if (!stream.remoteEnded) stream.reset(ErrorCode.cancel);
    for (const stream of this.sendFlow.finish()) stream.reset(ErrorCode.cancel);
    this.#endIfDone();
    this.#probePeer();
  }

  // A peer that has closed its socket looks the same. Only sending tells: its system resets the connection on our first
  // packet, and the next one fails.
  #probePeer(): void {
    if (this.#ended) return;
    this.output.frame(FrameType.ping, 0, 0, alivePing);
    this.#after(probeEveryMs, () => this.#probePeer());
  }

  #endIfDone(): void {
    if (this.#drain === "final" && this.#streams.open.size === 0) this.#end(this.#options.limits.stallTimeoutMs);
  }

  /**
   * Stops sending, once what was written is out.
   *
   * @param patienceMs - milliseconds after which a peer that has not read the rest, or is still sending, is cut off
   */
  #end(patienceMs: number): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#reader.stopped = true;
    this.#deadlines.stop();
    this.output.close();
    this.#after(patienceMs, () => this.#socket.destroy());
    // Closing a socket with unread bytes resets it, and the peer may lose our last frames. So the peer may send a while
    // longer.
    this.#socket.resume();
    this.#socket.end(() => this.#after(this.#options.limits.lingerMs, () => this.#socket.destroy()));
    this.#resetAll();
  }

  #close(): void {
    clearTimeout(this.#timer);
    this.#deadlines.stop();
    this.#ended = true;
    this.output.close();
    this.#resetAll();
    this.#backlog.close();
    this.#options.onClose();
  }

  #resetAll(): void {
    for (const stream of this.#streams.open.values()) stream.receiveReset(ErrorCode.cancel);
  }

  #goAway(lastStreamId: number, code: ErrorCode): void {
    this.output.numbers(FrameType.goAway, 0, lastStreamId, code);
  }

  #after(ms: number, then: () => void): void {
    clearTimeout(this.#timer);
    if (this.#socket.destroyed) return;
    this.#timer = setTimeout(then, ms).unref();
  }
}

const drainPing = Buffer.from("draining");
const alivePing = Buffer.from("alive? \n");
// Soon enough for calls that nobody waits for any more, and far above a round trip.
const probeEveryMs = 1000;
// As long as the slowest round trip worth waiting for.
const drainPingTimeoutMs = 2000;

// A socket's error is followed by its close, which is handled.
function ignore(): void {}
