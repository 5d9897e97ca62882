import { Socket } from "node:net";
import type { Duplex } from "node:stream";
import {
  type Backlog,
  type BacklogBudget,
  ErrorCode,
  type ErrorScope,
  freeChunk,
  freedBytesMin,
} from "@plantstore/gateway/exchange";
import type { DeadlineEffects, Deadlines, Handshake } from "./deadlines.ts";
import { FloodGuard } from "./flood-guard.ts";
import { FrameType } from "./frame-numbers.ts";
import { FrameReader, type FrameReceiver } from "./frame-reader.ts";
import type { ConnectionParts, RuledStream } from "./frame-rules.ts";
import { ConnectionError } from "./http2-error.ts";
import type { Http2Limits } from "./http2-limits.ts";
import { Output } from "./output.ts";
import { ReceiveFlow } from "./receive-flow.ts";
import { SendFlow } from "./send-flow.ts";
import { StreamTable } from "./stream-table.ts";
import type { FlowConnection } from "./stream-flow.ts";

/** Options of a connection of either side. */
export interface ConnectionOptions {
  readonly limits: Http2Limits;
  /** Counts what peers do not read; shared by all connections of a server, or of a client. */
  readonly budget: BacklogBudget;
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

/** What one side of a connection begins with (RFC 9113 §3.4). */
export interface Opening {
  /** What the peer sends before its first frame. */
  readonly peerPreface: Buffer;
  /** What we send before our first frame. */
  readonly preface: Uint8Array;
  /** What precedes our first header block (RFC 7541 §4.2). */
  readonly tableUpdate: Uint8Array;
  /** The payload of our SETTINGS. */
  readonly settings: Uint8Array;
  /** Whether chunks of which nothing is kept are freed once they are read. */
  readonly freesChunks: boolean;
}

/**
 * What both sides of an HTTP/2 connection have in common (RFC 9113): a socket, what is read from it and written to it,
 * and its end. What frames and deadlines mean is the side's. Knows nothing of RPC.
 */
export abstract class FrameConnection<
  Stream extends RuledStream,
  Rules extends FrameReceiver & Handshake,
  Clock extends Deadlines<Stream>,
> implements FlowConnection {
  readonly output: Output;
  readonly sendFlow: SendFlow;
  readonly receiveFlow: ReceiveFlow;
  protected readonly streams: StreamTable<Stream> = new StreamTable();
  protected readonly rules: Rules;
  protected readonly deadlines: Clock;
  /** Whether nothing more is read or sent. */
  protected ended = false;
  readonly #socket: Duplex;
  readonly #options: ConnectionOptions;
  readonly #backlog: Backlog;
  readonly #reader: FrameReader;
  /** Whether chunks are freed once they are read. A socket makes a buffer for each; other streams may share theirs. */
  readonly #freesChunks: boolean;
  /** Whether something has kept a view of the chunk that is being read. */
  #chunkKept = false;
  /** Runs the next step of ending the connection. */
  #timer: NodeJS.Timeout | undefined;

  constructor(socket: Duplex, options: ConnectionOptions, opening: Opening) {
    const { limits, budget } = options;
    this.#socket = socket;
    this.#freesChunks = opening.freesChunks && socket instanceof Socket;
    this.#options = options;
    this.#backlog = budget.open(socket, () => this.#evict());
    this.output = new Output(socket, this.#backlog, opening.tableUpdate, () => this.#drained());
    this.sendFlow = new SendFlow(this.output, limits, this.#backlog);
    this.receiveFlow = new ReceiveFlow(limits, this.output);
    const { output, sendFlow, receiveFlow, streams } = this;
    const guard = new FloodGuard(limits, output);
    const parts = { limits, output, backlog: this.#backlog, guard, streams, sendFlow, receiveFlow };
    this.rules = this.createRules(parts, (code) => options.onError?.("stream", code));
    this.#reader = new FrameReader(this.rules, opening.peerPreface);
    this.deadlines = this.createDeadlines(parts, this.rules, {
      ping: () => this.ping(),
      fail: (error) => this.fail(error),
      drain: () => this.drain(),
      destroy: () => this.destroy(),
    });
    socket.on("data", (chunk: Buffer) => this.#read(chunk));
    socket.on("end", () => this.onPeerEnd());
    socket.on("close", () => this.#close());
    socket.on("error", ignore);
    if (opening.preface.byteLength > 0) output.preface(opening.preface);
    output.frame(FrameType.settings, 0, 0, opening.settings);
    this.receiveFlow.open();
  }

  /** Creates what acts on frames. Called by the constructor, before the fields of the side are set. */
  protected abstract createRules(parts: ConnectionParts<Stream>, streamFailed: (code: ErrorCode) => void): Rules;

  /** Creates what looks at deadlines. Called by the constructor, before the fields of the side are set. */
  protected abstract createDeadlines(parts: ConnectionParts<Stream>, rules: Rules, effects: DeadlineEffects): Clock;

  /** Ends the connection without losing a request. */
  abstract drain(): void;

  /** Called when the peer has ended its side. */
  protected abstract onPeerEnd(): void;

  /** The highest stream that the peer has opened and we have taken: what our GOAWAY names (§6.8). */
  protected abstract get lastAcceptedId(): number;

  /** Ends the open streams, because the connection is over. */
  protected abstract abortOpenStreams(): void;

  /** Ends the connection at once. */
  destroy(): void {
    this.#socket.destroy();
  }

  sendReset(streamId: number, code: ErrorCode): void {
    this.output.numbers(FrameType.rstStream, streamId, code);
    this.streams.rememberReset(streamId);
  }

  /** Notes that a view of the chunk being read is kept. */
  keepChunk(): void {
    this.#chunkKept = true;
  }

  forget(streamId: number): void {
    this.streams.open.delete(streamId);
  }

  reportFault(error: unknown): void {
    this.#options.onFault(error);
  }

  /** Sends a PING whose answer only shows that the peer is alive. */
  protected ping(): void {
    this.output.frame(FrameType.ping, 0, 0, alivePing);
  }

  #read(chunk: Buffer): void {
    if (this.ended) return;
    this.deadlines.lastReceivedAtMs = Math.trunc(performance.now());
    this.#chunkKept = !this.#freesChunks;
    try {
      this.#reader.read(chunk);
      if (!this.#chunkKept && chunk.byteLength >= freedBytesMin) freeChunk(chunk);
      // Anything else that the peer asks for would have to wait, too. A peer that only reads after it has written
      // everything never gets here, because what the windows allow stays below this limit.
      const { output } = this;
      if (output.congested && output.waitingBytes > this.#options.limits.unreadBytes) this.#socket.pause();
    } catch (error) {
      this.fail(error);
    }
  }

  /** Goes on sending, because the peer has read what the socket held. */
  #drained(): void {
    this.#socket.resume();
    this.sendFlow.pump();
  }

  /** Ends the connection to make room for others. */
  #evict(): void {
    // A GOAWAY would wait behind everything else and never arrive.
    if (this.output.congested) this.destroy();
    else this.fail(new ConnectionError(ErrorCode.enhanceYourCalm, "too many bytes are buffered because the client does not read them"));
  }

  /** §5.4.1: sends the reason and the last stream that was taken, and ends the connection. */
  protected fail(error: unknown): void {
    if (this.ended) return;
    const isDefect = !(error instanceof ConnectionError);
    const code = isDefect ? ErrorCode.internalError : error.code;
    this.goAway(this.lastAcceptedId, code);
    this.end(this.#options.limits.lingerMs);
    if (isDefect) this.#options.onFault(error);
    else this.#options.onError?.("connection", code);
  }

  /**
   * Stops sending, once what was written is out.
   *
   * @param patienceMs - milliseconds after which a peer that has not read the rest, or is still sending, is cut off
   */
  protected end(patienceMs: number): void {
    if (this.ended) return;
    this.ended = true;
    this.#reader.stopped = true;
    this.deadlines.stop();
    this.output.close();
    this.after(patienceMs, () => this.#socket.destroy());
    // Closing a socket with unread bytes resets it, and the peer may lose our last frames. So the peer may send a while
    // longer.
    this.#socket.resume();
    this.#socket.end(() => this.after(this.#options.limits.lingerMs, () => this.#socket.destroy()));
    this.abortOpenStreams();
  }

  #close(): void {
    clearTimeout(this.#timer);
    this.deadlines.stop();
    this.ended = true;
    this.output.close();
    this.abortOpenStreams();
    this.#backlog.close();
    this.#options.onClose();
  }

  protected goAway(lastStreamId: number, code: ErrorCode): void {
    this.output.numbers(FrameType.goAway, 0, lastStreamId, code);
  }

  /** Runs the next step of ending the connection, instead of the one that waits. */
  protected after(ms: number, then: () => void): void {
    clearTimeout(this.#timer);
    if (this.#socket.destroyed) return;
    this.#timer = setTimeout(then, ms).unref();
  }
}

const alivePing = Buffer.from("alive? \n");

// A socket's error is followed by its close, which is handled.
function ignore(): void {}
