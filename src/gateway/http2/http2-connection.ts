import type { Duplex } from "node:stream";
import { Deadlines } from "./deadlines.ts";
import { FloodGuard } from "./flood-guard.ts";
import { Flag, FrameType, windowBytesMax } from "./frame.ts";
import { FrameReader } from "./frame-reader.ts";
import { FrameRules } from "./frame-rules.ts";
import { emptyTable } from "./hpack/encoder.ts";
import { ConnectionError, ErrorCode } from "./http2-error.ts";
import type { Http2Limits } from "./http2-limits.ts";
import { Http2Stream, type StreamCarrier } from "./http2-stream.ts";
import { Output } from "./output.ts";
import { ReceiveFlow } from "./receive-flow.ts";
import type { RequestHead } from "./request-head.ts";
import { type QueueBudget, SendFlow } from "./send-flow.ts";
import { encodeOwnSettings } from "./settings.ts";
import { StreamTable } from "./stream-table.ts";

/** Who is told of the requests of a connection, and what bounds it. */
export interface Http2ConnectionOptions {
  readonly limits: Http2Limits;
  /** Shared by the connections of a server. */
  readonly budget: QueueBudget;
  /** A request has begun: its header is there. The receiver of its body is to be set before this returns. */
  readonly onStream: (stream: Http2Stream) => void;
  /** The connection is over. */
  readonly onClose: () => void;
  /** Who serves a stream has thrown: a defect there. The stream is reset and the others go on. */
  readonly onFault: (error: unknown) => void;
}

/**
 * The server's side of an HTTP/2 connection (RFC 9113) on a socket whose first bytes may be the preface.
 *
 * Here is its life: from our SETTINGS to the last GOAWAY, whatever end comes first. What a frame means is
 * {@link FrameRules}' to say. Knows nothing of what is asked for.
 */
export class Http2Connection implements StreamCarrier {
  readonly sendFlow: SendFlow;
  readonly receiveFlow: ReceiveFlow;
  readonly #socket: Duplex;
  readonly #options: Http2ConnectionOptions;
  readonly #output: Output;
  readonly #guard: FloodGuard;
  readonly #streams = new StreamTable();
  readonly #rules: FrameRules;
  readonly #reader: FrameReader;
  readonly #deadlines: Deadlines;
  #firstBlock = true;
  #drain: "no" | "announced" | "final" = "no";
  #ended = false;
  /** For what the end of the connection waits for. */
  #timer: NodeJS.Timeout | undefined;

  constructor(socket: Duplex, options: Http2ConnectionOptions) {
    const { limits, budget } = options;
    this.#socket = socket;
    this.#options = options;
    this.#output = new Output(socket, () => this.sendFlow.pump());
    this.#guard = new FloodGuard(limits);
    this.sendFlow = new SendFlow(this.#output, limits, budget);
    this.receiveFlow = new ReceiveFlow(limits, this.#output);
    this.#rules = this.#createRules();
    this.#reader = new FrameReader((type, flags, streamId, bytes, from, length) => {
      // Behind a connection error nothing is taken any more, also not what came in the same chunk.
      if (!this.#ended) this.#rules.take(type, flags, streamId, bytes, from, length);
    });
    this.#deadlines = this.#createDeadlines();
    socket.on("data", (chunk: Buffer) => this.#read(chunk));
    socket.on("end", () => this.#peerEnded());
    socket.on("close", () => this.#close());
    socket.on("error", ignore);
    this.#output.frame(FrameType.settings, 0, 0, encodeOwnSettings(limits));
    this.receiveFlow.open();
  }

  /** Whether a stream is open, or what ends one has not left yet. */
  get busy(): boolean {
    return this.#streams.size > 0 || this.#output.waitingBytes > 0;
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
    this.#after(drainPingTimeoutMs, () => this.#finalGoAway());
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
    // For its connection and for its stream.
    this.#guard.allow("windowUpdates", 2);
    this.#output.frame(FrameType.data, endStream ? Flag.endStream : 0, streamId, piece);
  }

  sendReset(stream: Http2Stream, code: ErrorCode): void {
    this.#output.numbers(FrameType.rstStream, stream.id, code);
    this.#streams.rememberReset(stream.id);
    this.#forget(stream);
    stream.receiveReset(code);
  }

  ended(stream: Http2Stream): void {
    if (stream.remoteEnded) this.#forget(stream);
  }

  faulted(error: unknown): void {
    this.#options.onFault(error);
  }

  #createRules(): FrameRules {
    const parts = {
      limits: this.#options.limits,
      output: this.#output,
      guard: this.#guard,
      streams: this.#streams,
      sendFlow: this.sendFlow,
      receiveFlow: this.receiveFlow,
    };
    return new FrameRules(parts, {
      opened: (streamId, head, headTooLarge, ended) => this.#open(streamId, head, headTooLarge, ended),
      sendReset: (stream, code) => this.sendReset(stream, code),
      forget: (stream) => this.#forget(stream),
      ponged: (payload) => {
        if (payload.equals(drainPing)) this.#finalGoAway();
      },
    });
  }

  #createDeadlines(): Deadlines {
    const rules = this.#rules;
    return new Deadlines(this.#options.limits, {
      get settled() {
        return rules.settled;
      },
      get blockOpen() {
        return rules.blockOpen;
      },
      streams: this.#streams,
      stalled: (nowMs) => this.sendFlow.stalled(nowMs),
      restartCounts: () => this.#guard.restart(),
      ping: () => this.#output.frame(FrameType.ping, 0, 0, alivePing),
      fail: (error) => this.#fail(error),
      destroy: () => this.destroy(),
    });
  }

  #open(streamId: number, head: RequestHead, headTooLarge: boolean, ended: boolean): void {
    const opening = { sendWindow: this.#rules.peer.initialWindowSize, nowMs: this.#deadlines.heardAtMs };
    const stream = new Http2Stream(this, streamId, head, headTooLarge, opening);
    stream.remoteEnded = ended;
    this.#streams.add(stream);
    stream.begin(this.#options.onStream);
  }

  #read(chunk: Buffer): void {
    if (this.#ended) return;
    this.#deadlines.heard();
    try {
      this.#reader.read(chunk);
      if (this.#output.waitingBytes > this.#options.limits.queuedBytes) {
        throw new ConnectionError(ErrorCode.enhanceYourCalm, "too much is waiting to be taken");
      }
    } catch (error) {
      this.#fail(error);
    }
  }

  /** §5.4.1: says why and which streams were taken, and ends the connection. */
  #fail(error: unknown): void {
    if (this.#ended) return;
    const code = error instanceof ConnectionError ? error.code : ErrorCode.internalError;
    this.#goAway(this.#streams.lastStreamId, code);
    this.#end(lingerMs);
  }

  #finalGoAway(): void {
    if (this.#drain !== "announced" || this.#ended) return;
    this.#drain = "final";
    this.#streams.seal();
    this.#goAway(this.#streams.lastStreamId, ErrorCode.noError);
    this.#endIfDone();
  }

  /** The peer says no more: what it began it never will complete, nor will it make room; the rest is answered. */
  #peerEnded(): void {
    if (this.#ended) return;
    this.#drain = "final";
    this.#streams.seal();
    for (const stream of this.#streams.values()) if (!stream.remoteEnded) stream.reset(ErrorCode.cancel);
    for (const stream of this.sendFlow.finish()) stream.reset(ErrorCode.cancel);
    this.#endIfDone();
    // One that is gone altogether has ended its side too; only what we send tells: its system resets the connection.
    if (!this.#ended) this.#output.frame(FrameType.ping, 0, 0, alivePing);
  }

  #endIfDone(): void {
    if (this.#drain === "final" && this.#streams.size === 0) this.#end(this.#options.limits.stallTimeoutMs);
  }

  /**
   * Says no more, and lets out what is written.
   *
   * @param patienceMs - a peer that does not take the rest by then, or goes on sending, is cut off
   */
  #end(patienceMs: number): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#deadlines.stop();
    this.#output.close();
    this.#after(patienceMs, () => this.#socket.destroy());
    // A socket that is closed with bytes of the peer unread takes our last words back: so it may still talk a while.
    this.#socket.end(() => this.#after(lingerMs, () => this.#socket.destroy()));
    this.#resetAll();
  }

  #close(): void {
    clearTimeout(this.#timer);
    this.#deadlines.stop();
    this.#ended = true;
    this.#output.close();
    this.#resetAll();
    this.#options.onClose();
  }

  #resetAll(): void {
    for (const stream of this.#streams.values()) {
      this.#forget(stream);
      stream.receiveReset(ErrorCode.cancel);
    }
  }

  #forget(stream: Http2Stream): void {
    stream.closed = true;
    this.#streams.remove(stream);
    this.receiveFlow.release(stream);
    if (this.#drain === "final") this.#endIfDone();
  }

  #goAway(lastStreamId: number, code: ErrorCode): void {
    this.#output.numbers(FrameType.goAway, 0, lastStreamId, code);
  }

  #after(ms: number, then: () => void): void {
    clearTimeout(this.#timer);
    if (this.#socket.destroyed) return;
    this.#timer = setTimeout(then, ms).unref();
  }
}

const drainPing = Buffer.from("draining");
const alivePing = Buffer.from("alive? \n");
// As long as the slowest round trip that is still worth waiting for.
const drainPingTimeoutMs = 2000;
// For the last frames to be taken by the peer.
const lingerMs = 1000;

// An error of the socket is followed by its end, which is what counts.
function ignore(): void {}
