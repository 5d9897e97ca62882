import { AsyncResource } from "node:async_hooks";
import type { Socket } from "node:net";
import {
  type Backlog,
  type BacklogBudget,
  type BodySource,
  clientGone,
  freeChunk,
  freedBytesMin,
  type HeaderFields,
  type HttpProblem,
  type IncomingBody,
  type Limits,
  lingerBytesMax,
  notHttp,
  timedOut,
  unreadBodyBytesMax,
} from "@plantstore/gateway/exchange";
import { formatResponseHead, connectionCloseLine, framingOf, framingOfStream, keepAliveLines } from "./response-head.ts";
import { ResponseWriter } from "./response-writer.ts";
import { Deadlines } from "./deadlines.ts";
import { type Http1RequestHead, emptyHead } from "./request-head.ts";
import { type RequestCallbacks, RequestReader } from "./request-reader.ts";

/** Receives the body of one request, and what happens to its connection. */
export interface RequestReceiver {
  /** Gets the pieces of the body. Calls {@link Http1Connection.consumed} when they are used. */
  readonly body: IncomingBody | undefined;
  /** Called when the rest of the request cannot be read. Must refuse the request if it has not been answered. */
  onRequestError(problem: HttpProblem): void;
  /** Called when the client goes away before the answer is complete. */
  onDisconnect(): void;
  /** Called when the client takes more of the answer. */
  onWritable(): void;
}

/** Options of an {@link Http1Connection}, which all connections of a server share. */
export interface Http1ConnectionOptions {
  readonly limits: Limits;
  /** Milliseconds between two calls of {@link Http1Connection.checkTimeouts}. */
  readonly timeoutCheckIntervalMs: number;
  /** Counts what clients do not take. */
  readonly budget: BacklogBudget;
  /** Called with each request, one after the other. Must set the connection's receiver before it returns. */
  readonly onRequest: (connection: Http1Connection, head: Http1RequestHead) => void;
  readonly onClose: (connection: Http1Connection) => void;
  /** Called with a defect of ours, which ends the connection. */
  readonly onFault: (error: unknown) => void;
}

/**
 * The server's side of an HTTP/1.1 connection (RFC 9112) on a socket.
 *
 * Requests are served one at a time, even if the client pipelines them: they may depend on each other, and only safe
 * ones may be processed at the same time (§9.3.2). Knows nothing of RPC.
 */
export class Http1Connection implements RequestCallbacks, BodySource {
  readonly socket: Socket;
  /** Stands for the connection where nothing may be done to it: the socket could also be closed. */
  readonly key: object = {};
  receiver: RequestReceiver | undefined;
  readonly #options: Http1ConnectionOptions;
  /**
   * Where each request begins: one that follows another in its packet, or because of its answer, must not find what the
   * other's handler has entered (`AsyncLocalStorage`).
   */
  readonly #context = new AsyncResource("Http1Connection");
  readonly #backlog: Backlog;
  /** What comes next. */
  readonly #reader: RequestReader;
  readonly #writer: ResponseWriter;
  /** How long it may take. */
  readonly #deadlines: Deadlines;
  readonly #keepAlive: string;
  /** The head of the current request. */
  #head: Http1RequestHead = emptyHead;
  #continued = false;
  /** Whether the head of the answer has been sent, but not all of its body. */
  #begun = false;
  /** Whether the answer to the current request, or to the next, is the last of the connection. */
  #isLast = false;
  #isDraining = false;
  /** Whether it is so old that it ends when it is idle for a moment. */
  #isRetired = false;
  #clientEnded = false;
  #droppedBytes = 0;

  constructor(socket: Socket, options: Http1ConnectionOptions) {
    const { budget, limits, timeoutCheckIntervalMs } = options;
    this.socket = socket;
    this.#options = options;
    this.#backlog = budget.open(socket, () => socket.destroy());
    this.#writer = new ResponseWriter(socket, this.#backlog);
    this.#reader = new RequestReader(limits, this, this.#writer);
    this.#deadlines = new Deadlines(limits, timeoutCheckIntervalMs);
    this.#keepAlive = keepAliveLines(limits.idleTimeoutMs);
    socket.on("data", (chunk: Buffer) => this.#onData(chunk));
    socket.on("drain", () => this.#onDrain());
    socket.on("end", () => this.#onEnd());
    // Another connection's answer may close this one, to free its memory.
    socket.on("close", () => this.#context.runInAsyncScope(() => this.#onClose()));
    socket.on("error", ignore);
  }

  /** Whether a request has not been answered yet, or its answer has not been sent. */
  get busy(): boolean {
    return this.receiver !== undefined || this.socket.writableLength > 0;
  }

  /** 1 while {@link busy}, because requests are served one at a time. */
  get requests(): number {
    return this.busy ? 1 : 0;
  }

  /** Ends the connection with the next answer after which no pipelined request is waiting. */
  drain(): void {
    this.#isDraining = true;
  }

  /** Ends the connection as {@link drain} does, or once it has no request for a second. */
  retire(): void {
    this.#isDraining = this.#isRetired = true;
  }

  /** RFC 9110 §10.1.1: tells the client to send the body, of which nothing has arrived, if it waits for that. */
  startBody(): void {
    this.#continued = this.#head.section.expectsContinue && !this.#begun;
    if (this.#continued) this.#writer.continue();
  }

  /** Notes that some of the body was used, so that more may be read. */
  consumed(): void {
    if (this.#reader.stage === "body") this.#pauseOrResume();
  }

  /**
   * Sends a whole answer.
   *
   * @param fields - in several lists, some of which may have been prepared
   * @param body - absent where the status or the method allows none
   * @throws TypeError for fields that HTTP does not allow, before anything is sent
   */
  respond(httpStatus: number, fields: readonly HeaderFields[], body: Uint8Array | undefined): void {
    this.#decideWhetherLast();
    const isHead = this.#head.httpMethod === "HEAD";
    const isLengthInFields = isHead && body === undefined;
    const framing = isLengthInFields ? framingOfStream(this.#head, httpStatus, fields) : framingOf(httpStatus, body);
    const head = formatResponseHead(httpStatus, fields, framing, this.#isLast ? connectionCloseLine : this.#keepAlive);
    this.#writer.respond(head, isHead || framing === "none" || framing === 0 ? undefined : body);
    this.#finish();
  }

  /** Sends the head of an answer whose body follows in pieces. Throws as {@link respond} does. */
  begin(httpStatus: number, fields: readonly HeaderFields[]): void {
    const framing = framingOfStream(this.#head, httpStatus, fields);
    if (framing === "close") this.#isLast = true;
    this.#decideWhetherLast();
    const head = formatResponseHead(httpStatus, fields, framing, this.#isLast ? connectionCloseLine : this.#keepAlive);
    this.#begun = true;
    this.#writer.begin(head, this.#head.httpMethod === "HEAD" ? "none" : framing);
  }

  /** Sends a piece of the body. Returns whether the client has to take some of it before more is sent. */
  write(piece: Uint8Array): boolean {
    this.#writer.write(piece);
    // A client that is gone would reset the connection.
    if (this.#clientEnded) this.#deadlines.restart();
    return this.#writer.congested;
  }

  /** Ends the answer that {@link begin} began. */
  end(trailer: HeaderFields | undefined): void {
    if (this.#writer.end(trailer)) this.#finish();
    else this.destroy();
  }

  /** Ends the connection at once, the only way to tell that an answer is incomplete (RFC 9112 §8). */
  destroy(): void {
    this.socket.destroy();
  }

  /** Checks the time-outs. Called at regular intervals. @param nowMs - by `performance.now()` */
  checkTimeouts(nowMs: number): void {
    const { stage } = this.#reader;
    const due = this.#deadlines.check({
      stage,
      headBegun: this.#reader.incoming.unusedBytes > 0,
      retired: this.#isRetired,
      clientEnded: this.#clientEnded,
      canProbe: this.#head.section.httpVersion === "1.1" && !this.#begun,
      begun: this.#begun,
      congested: this.#writer.congested,
      stalledMs: this.#backlog.stalledMs(nowMs),
    });
    if (due === "destroy") this.destroy();
    else if (due === "close") this.#linger();
    // If the client is gone, its system resets the connection on our first packet, and the next one fails. RFC 9110
    // §15.2: clients take interim answers that they have not asked for, except for those of HTTP/1.0.
    else if (due === "probe") this.#writer.continue();
    else if (due === "refuse" && stage === "head") this.#reader.refuse(timedOut());
    else if (due === "refuse") this.onRequestError(stage === "body" ? timedOut() : clientGone());
    // While nothing is read, only a write shows that the client has reset the connection: even an empty one fails then.
    else if (this.socket.isPaused() && !this.#writer.congested) this.socket.write("");
  }

  onHead(head: Http1RequestHead): void {
    this.#head = head;
    this.#deadlines.restart();
    if (!head.section.persistent || head.problem !== undefined) this.#isLast = true;
    // A resource for each: on Node 22, what a handler enters stays in the one that it is called in.
    this.#context.runInAsyncScope(() =>
      new AsyncResource("Http1Request").runInAsyncScope(this.#options.onRequest, undefined, this, head),
    );
  }

  onPiece(piece: Buffer, last: boolean): boolean {
    if (this.receiver !== undefined) return this.receiver.body?.onData(piece, last) === true;
    // The rest of a body behind its answer.
    if (last) this.#next();
    return false;
  }

  onBodyEnd(): void {
    if (this.receiver === undefined) this.#next();
    else this.receiver.body?.onEnd();
  }

  onRequestError(problem: HttpProblem): void {
    const { receiver } = this;
    this.#isLast = true;
    this.#reader.stage = "response";
    if (receiver === undefined) this.#linger();
    else receiver.onRequestError(problem);
  }

  #onData(chunk: Buffer): void {
    const reader = this.#reader;
    if (reader.stage === "closed") return this.#drop(chunk.byteLength);
    const isFirst = reader.incoming.unusedBytes === 0;
    const isKept = this.#read(chunk);
    if (!isKept && chunk.byteLength >= freedBytesMin) freeChunk(chunk);
    // The time-out of a head starts with its first byte.
    if (isFirst && reader.stage === "head" && reader.incoming.unusedBytes > 0) this.#deadlines.restart();
    this.#pauseOrResume();
  }

  /** Reads on, and returns whether a view of the chunk was kept. An internal error closes the connection. */
  #read(chunk?: Buffer): boolean {
    try {
      return this.#reader.read(chunk);
    } catch (error) {
      // The socket closes later. A response sent before that would start reading the next request.
      this.#reader.stop();
      this.destroy();
      this.#options.onFault(error);
      return true;
    }
  }

  /** Keeps reading while there is room: only reading shows that a client has gone. */
  #pauseOrResume(): void {
    const { socket } = this;
    const hasRoom = this.#hasRoom();
    if (hasRoom !== socket.isPaused()) return;
    if (hasRoom) socket.resume();
    else socket.pause();
  }

  #hasRoom(): boolean {
    // No more is read from a client that takes nothing: reading would also postpone its time-out.
    if (this.#writer.congested) return false;
    if (this.#reader.stage === "body") return this.receiver?.body?.isFull !== true;
    return this.#reader.stage !== "response" || this.#reader.incoming.unusedBytes <= aheadBytesMax;
  }

  /** Goes on after a complete answer. */
  #finish(): void {
    this.receiver = undefined;
    // It would be kept while the connection is idle.
    this.#head = emptyHead;
    this.#continued = this.#begun = false;
    if (this.#isLast) return this.#linger();
    if (this.#reader.stage === "response") this.#next();
    // The rest of the body is dropped as it arrives.
    else this.#pauseOrResume();
    this.#deadlines.restart();
  }

  #next(): void {
    this.#reader.stage = "head";
    // The reader is about to tell the receiver that this request has ended, which must come first.
    if (this.#reader.isReading) return;
    if (this.#reader.incoming.unusedBytes > 0 || this.#clientEnded || this.socket.isPaused())
      queueMicrotask(() => this.#context.runInAsyncScope(() => this.#goOn()));
  }

  #goOn(): void {
    if (this.#reader.stage === "head") this.#read();
    const { stage } = this.#reader;
    // The rest of the body will not come.
    if (stage === "body" && this.#clientEnded) this.onRequestError(notHttp());
    else if (stage === "head" && this.#clientEnded && !this.#writer.congested) this.#afterLastRequest();
    else this.#pauseOrResume();
  }

  /** Ends the connection of a client that sends no further requests. */
  #afterLastRequest(): void {
    if (this.#reader.incoming.unusedBytes > 0) this.#reader.refuse(notHttp());
    else this.#linger();
  }

  /**
   * Ends our side, and reads on for a while. Closing a socket with unread bytes resets the connection, and many clients
   * read their answer only after sending everything: they would lose it (RFC 9112 §9.6).
   */
  #linger(): void {
    this.#reader.stop();
    this.#deadlines.restart();
    this.#writer.close();
    this.#pauseOrResume();
  }

  #drop(bytes: number): void {
    this.#droppedBytes += bytes;
    if (this.#droppedBytes > lingerBytesMax) this.destroy();
  }

  /** Called when the client has ended its side. It may still be reading, or be gone, which {@link checkTimeouts} finds out. */
  #onEnd(): void {
    this.#clientEnded = true;
    this.#deadlines.restart();
    this.#goOn();
  }

  #onClose(): void {
    this.#reader.stop();
    this.#writer.drop();
    this.#backlog.close();
    const { receiver } = this;
    this.receiver = undefined;
    receiver?.onDisconnect();
    this.#options.onClose(this);
  }

  #onDrain(): void {
    this.#writer.drained();
    if (this.#writer.congested) return;
    this.receiver?.onWritable();
    this.#context.runInAsyncScope(() => this.#goOn());
  }

  /** Decides whether the connection ends with the answer that is about to be sent. */
  #decideWhetherLast(): void {
    const { stage, incoming } = this.#reader;
    const canBeKept = stage === "body" ? this.#restIsSmall() : !this.#isDraining || incoming.unusedBytes > 0;
    if (!canBeKept) this.#isLast = true;
  }

  /** Returns whether the rest of the body is small enough to read, so that the next request can be found after it. */
  #restIsSmall(): boolean {
    // A client that was not told to continue may or may not send its body.
    if (this.#isDraining || (this.#head.section.expectsContinue && !this.#continued)) return false;
    return this.#reader.bodyBytesLeft <= unreadBodyBytesMax;
  }
}

/** Bytes that are read ahead of requests behind one that is not answered. */
// As much as is read from a socket at once.
const aheadBytesMax = 64 * 1024;

// A socket's error is followed by its close, which is handled.
function ignore(): void {}
