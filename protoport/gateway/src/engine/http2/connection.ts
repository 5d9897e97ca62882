import { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { ErrorCode, type ErrorScope, freeChunk, minFreedBytes } from "../../http/index.ts";
import { type Backlog, type BacklogBudget } from "../backlog.ts";
import type { DeadlineCallbacks, Http2Deadlines, Handshake } from "./http2-deadlines.ts";
import { FloodGuard } from "./flood-guard.ts";
import { FrameType } from "./frame-numbers.ts";
import { FrameReader, type FrameReceiver } from "./frame-reader.ts";
import type { ConnectionParts, HandledStream } from "./frame-handler.ts";
import { ConnectionError } from "./http2-error.ts";
import type { Http2Limits } from "./http2-limits.ts";
import { Output } from "./output.ts";
import { ReceiveFlow, SendFlow } from "./flow-control.ts";
import { StreamTable } from "./stream-table.ts";
import type { FlowConnection } from "./stream-flow.ts";

/** Options for a client or server connection. */
export interface ConnectionOptions {
  readonly limits: Http2Limits;
  /** Counts the bytes that peers have not read. All connections of a server or client share one budget. */
  readonly budget: BacklogBudget;
  /**
   * Called for each stream that is refused, or reset because of an invalid frame, and for each connection that is
   * closed with an error (RFC 9113 §5.4). Not called for our own bugs or for streams that time out.
   */
  readonly onError?: (scope: ErrorScope, code: ErrorCode) => void;
  /** Called when the connection is closed. */
  readonly onClose: () => void;
  /**
   * Called with an unexpected error. An error from a stream's receiver resets the stream. An error from our own code
   * closes the connection.
   */
  readonly onFault: (error: unknown) => void;
}

/** The bytes at the start of a connection (RFC 9113 §3.4). */
interface PrefaceOptions {
  /** The bytes that the peer sends before the peer's first frame. */
  readonly peerPreface: Buffer;
  /** The bytes that we send before our first frame. */
  readonly preface: Uint8Array;
  /** A dynamic table size update before our first field block (RFC 7541 §4.2). */
  readonly tableUpdate: Uint8Array;
  /** The payload of our SETTINGS. */
  readonly settings: Uint8Array;
  /** Whether chunks that no receiver has kept are freed after reading. */
  readonly freesChunks: boolean;
}

/**
 * Base class for HTTP/2 client and server connections (RFC 9113), with the socket, reading, writing and closing.
 * Subclasses handle frames and deadlines.
 */
export abstract class FrameConnection<
  Stream extends HandledStream,
  Handler extends FrameReceiver & Handshake,
  Clock extends Http2Deadlines<Stream>,
> implements FlowConnection {
  readonly output: Output;
  readonly sendFlow: SendFlow;
  readonly receiveFlow: ReceiveFlow;
  protected readonly streams: StreamTable<Stream> = new StreamTable();
  protected readonly frameHandler: Handler;
  protected readonly deadlines: Clock;
  /** Whether the connection is closing, so that no more frames are read or sent. */
  protected isClosing = false;
  readonly #socket: Duplex;
  readonly #options: ConnectionOptions;
  readonly #backlog: Backlog;
  readonly #reader: FrameReader;
  /** Whether chunks are freed after reading. Freeing requires a stream that allocates a buffer per chunk. */
  readonly #freesChunks: boolean;
  /** Whether a receiver has kept the current chunk. */
  #chunkKept = false;
  /** Timer for the next step of closing the connection. */
  #timer: NodeJS.Timeout | undefined;

  constructor(socket: Duplex, options: ConnectionOptions, prefaceOptions: PrefaceOptions) {
    const { limits, budget } = options;
    this.#socket = socket;
    this.#freesChunks = prefaceOptions.freesChunks && socket instanceof Socket;
    this.#options = options;
    this.#backlog = budget.open(socket, () => this.#evict());
    this.output = new Output(socket, this.#backlog, prefaceOptions.tableUpdate, () => this.#drained());
    this.sendFlow = new SendFlow(this.output, limits, this.#backlog);
    this.receiveFlow = new ReceiveFlow(limits, this.output);
    const { output, sendFlow, receiveFlow, streams } = this;
    const guard = new FloodGuard(limits, output);
    const parts = { limits, output, backlog: this.#backlog, guard, streams, sendFlow, receiveFlow };
    this.frameHandler = this.createFrameHandler(parts, (code) => options.onError?.("stream", code));
    this.#reader = new FrameReader(this.frameHandler, prefaceOptions.peerPreface);
    this.deadlines = this.createDeadlines(parts, this.frameHandler, {
      ping: () => this.ping(),
      fail: (error) => this.#fail(error),
      drain: () => this.drain(),
      destroy: () => this.destroy(),
    });
    socket.on("data", (chunk: Buffer) => this.#read(chunk));
    socket.on("end", () => this.onPeerEnd());
    socket.on("close", () => this.#close());
    socket.on("error", ignore);
    if (prefaceOptions.preface.byteLength > 0) output.preface(prefaceOptions.preface);
    output.frame(FrameType.settings, 0, 0, prefaceOptions.settings);
    this.receiveFlow.open();
  }

  /** Creates the frame handler. Called by the constructor, before the subclass's fields are set. */
  protected abstract createFrameHandler(
    parts: ConnectionParts<Stream>,
    streamFailed: (code: ErrorCode) => void,
  ): Handler;

  /** Creates the deadlines. Called by the constructor, before the subclass's fields are set. */
  protected abstract createDeadlines(
    parts: ConnectionParts<Stream>,
    frameHandler: Handler,
    callbacks: DeadlineCallbacks,
  ): Clock;

  /** Closes the connection gracefully after all open streams have closed. */
  abstract drain(): void;

  /** Called when the peer has closed its side of the connection. */
  protected abstract onPeerEnd(): void;

  /** Identifier of the highest peer stream that we have accepted, for our GOAWAY (§6.8). */
  protected abstract get lastAcceptedId(): number;

  /** Resets the open streams, because the connection is closed. */
  protected abstract abortOpenStreams(): void;

  destroy(): void {
    this.#socket.destroy();
  }

  sendReset(streamId: number, code: ErrorCode): void {
    this.output.numbers(FrameType.rstStream, streamId, code);
    this.streams.rememberReset(streamId);
  }

  /** Records that the current chunk is kept. */
  keepChunk(): void {
    this.#chunkKept = true;
  }

  forget(streamId: number): void {
    this.streams.open.delete(streamId);
  }

  reportFault(error: unknown): void {
    this.#options.onFault(error);
  }

  /** Sends a PING. The acknowledgement shows that the peer is alive. */
  protected ping(): void {
    this.output.frame(FrameType.ping, 0, 0, alivePing);
  }

  #read(chunk: Buffer): void {
    if (this.isClosing) return;
    this.deadlines.lastReceivedAtMs = Math.trunc(performance.now());
    this.#chunkKept = !this.#freesChunks;
    try {
      this.#reader.read(chunk);
      if (!this.#chunkKept && chunk.byteLength >= minFreedBytes) freeChunk(chunk);
      // Stops reading while too much output is buffered, because further responses would have to wait. A peer that
      // reads only after writing is not affected, because the windows allow fewer bytes than `unreadBytes`.
      const { output } = this;
      if (output.congested && output.bufferedBytes > this.#options.limits.unreadBytes) this.#socket.pause();
    } catch (error) {
      this.#fail(error);
    }
  }

  /** Resumes reading and sending after the peer has read the bytes that the socket buffered. */
  #drained(): void {
    this.#socket.resume();
    this.sendFlow.pump();
  }

  /** Closes the connection to free memory for other connections. */
  #evict(): void {
    // A GOAWAY would be queued after all other output and never arrive.
    if (this.output.congested) this.destroy();
    else
      this.#fail(
        new ConnectionError(
          ErrorCode.enhanceYourCalm,
          "too many bytes are buffered because the peer does not read them",
        ),
      );
  }

  /** §5.4.1: sends GOAWAY with the error and the last accepted stream, and closes the connection. */
  #fail(error: unknown): void {
    if (this.isClosing) return;
    const isDefect = !(error instanceof ConnectionError);
    const code = isDefect ? ErrorCode.internalError : error.code;
    this.goAway(this.lastAcceptedId, code);
    this.shutDown(this.#options.limits.lingerMs);
    if (isDefect) this.#options.onFault(error);
    else this.#options.onError?.("connection", code);
  }

  /**
   * Closes our side after all written bytes are sent.
   *
   * @param patienceMs - milliseconds that the peer has to read the rest before the connection is destroyed
   */
  protected shutDown(patienceMs: number): void {
    if (this.isClosing) return;
    this.isClosing = true;
    this.#reader.stopped = true;
    this.deadlines.stop();
    this.output.close();
    this.startTimer(patienceMs, () => this.#socket.destroy());
    // Closing a socket with unread bytes resets the connection, and the peer may lose our last frames. The connection
    // continues to read for a while to prevent a reset.
    this.#socket.resume();
    this.#socket.end(() => this.startTimer(this.#options.limits.lingerMs, () => this.#socket.destroy()));
    this.abortOpenStreams();
  }

  #close(): void {
    clearTimeout(this.#timer);
    this.deadlines.stop();
    this.isClosing = true;
    this.output.close();
    this.abortOpenStreams();
    this.#backlog.close();
    this.#options.onClose();
  }

  protected goAway(lastStreamId: number, code: ErrorCode): void {
    this.output.numbers(FrameType.goAway, 0, lastStreamId, code);
  }

  /** Calls `then` after `ms` milliseconds, and cancels the previous timer. */
  protected startTimer(ms: number, then: () => void): void {
    clearTimeout(this.#timer);
    if (this.#socket.destroyed) return;
    this.#timer = setTimeout(then, ms).unref();
  }
}

const alivePing = Buffer.from("alive? \n");

// Ignores socket errors, because the close event follows each error and is handled.
function ignore(): void {}
