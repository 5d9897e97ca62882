import { AsyncResource } from "node:async_hooks";
import type { Socket } from "node:net";
import {
  type BodySource,
  freeChunk,
  minFreedBytes,
  type HeaderFields,
  type HttpProblem,
  type IncomingBody,
  type Limits,
  maxLingerBytes,
  maxUnreadBodyBytes,
  type Peer,
} from "../../http/index.ts";
import { peerOf } from "../../http/node-entry.ts";
import { type Backlog, type BacklogBudget } from "../backlog.ts";
import { invalidHttpProblem } from "./problems.ts";
import { formatResponseHead, connectionCloseLine, framingOf, framingOfStream } from "./response-head.ts";
import { ResponseWriter } from "./response-writer.ts";
import { Http1Deadlines } from "./http1-deadlines.ts";
import { type Http1RequestHead, emptyHead } from "./request-head.ts";
import { type RequestCallbacks, Http1RequestReader } from "./request-reader.ts";

/** Receives the body of one request, and events from the connection. */
export interface RequestReceiver {
  /** Receives pieces of the body. Calls {@link Http1Connection.consumed} after using a piece. */
  readonly body: IncomingBody | undefined;
  /** Called when the request cannot be read completely. Must refuse the request, unless the response has started. */
  onRequestError(problem: HttpProblem): void;
  /** Called when the client disconnects before the response is complete. */
  onDisconnect(): void;
  /** Called when the socket accepts more of the response. */
  onWritable(): void;
}

/** Options for an {@link Http1Connection}, shared by all server connections. */
interface Http1ConnectionOptions {
  readonly limits: Limits;
  /** Milliseconds between two calls to {@link Http1Connection.checkTimeouts}. */
  readonly timeoutCheckIntervalMs: number;
  /** Counts the bytes that clients have not read. */
  readonly budget: BacklogBudget;
  /** Field lines of a response after which the connection stays open. */
  readonly keepAliveLines: string;
  /** Called for each request, one after the other. Must set the connection's receiver before it returns. */
  readonly onRequest: (connection: Http1Connection, head: Http1RequestHead) => void;
  readonly onClose: (connection: Http1Connection) => void;
  /** Called with an unexpected error, which is a bug in the engine and closes the connection. */
  readonly onFault: (error: unknown) => void;
}

/**
 * An HTTP/1.1 server connection (RFC 9112) on a socket.
 *
 * Pipelined requests are served one at a time. Requests may depend on each other, and only safe requests may be
 * processed concurrently (§9.3.2).
 */
export class Http1Connection implements RequestCallbacks, BodySource {
  readonly socket: Socket;
  readonly peer: Peer;
  /** Identifies the connection for applications, which must not get the socket. */
  readonly key: object = {};
  receiver: RequestReceiver | undefined;
  /** Position in the server's {@link OpenList}. */
  openAt: number | undefined = undefined;
  readonly #options: Http1ConnectionOptions;
  /** Each request starts in this context, so that it does not inherit the `AsyncLocalStorage` of another handler. */
  readonly #context = new AsyncResource("Http1Connection");
  readonly #backlog: Backlog;
  readonly #reader: Http1RequestReader;
  readonly #writer: ResponseWriter;
  readonly #deadlines: Http1Deadlines;
  #head: Http1RequestHead = emptyHead;
  #continued = false;
  /** Whether the response's head was sent, but not the complete body. */
  #responseStarted = false;
  /** Whether the connection closes after the response to the current or next request. */
  #isLast = false;
  #isDraining = false;
  /** Whether the connection has reached its maximum age, so that it closes when idle for a second. */
  #isRetired = false;
  #clientClosed = false;
  #droppedBytes = 0;

  constructor(socket: Socket, options: Http1ConnectionOptions) {
    const { budget, limits, timeoutCheckIntervalMs } = options;
    this.socket = socket;
    this.peer = peerOf(socket);
    this.#options = options;
    this.#backlog = budget.open(socket, () => socket.destroy());
    this.#writer = new ResponseWriter(socket, this.#backlog);
    this.#reader = new Http1RequestReader(limits, this, this.#writer);
    this.#deadlines = new Http1Deadlines(limits, timeoutCheckIntervalMs);
    socket.on("data", (chunk: Buffer) => this.receive(chunk));
    socket.on("drain", () => this.#onDrain());
    socket.on("end", () => this.#onEnd());
    // Another connection may close this one to free memory, so the event may occur in that connection's context.
    socket.on("close", () => this.#context.runInAsyncScope(() => this.#onClose()));
    // Ignored, because the close event follows each error and is handled.
    socket.on("error", () => undefined);
  }

  /** Whether a response is pending or not sent completely. */
  get busy(): boolean {
    return this.receiver !== undefined || this.socket.writableLength > 0;
  }

  /** Number of open requests: 1 while {@link busy}, because requests are served one at a time. */
  get requests(): number {
    return this.busy ? 1 : 0;
  }

  /** Closes the connection after the next response, or after the response to the last pipelined request. */
  drain(): void {
    this.#isDraining = true;
  }

  /** Closes the connection like {@link drain}, or when the connection was idle for a second. */
  retire(): void {
    this.#isDraining = this.#isRetired = true;
  }

  /** Sends 100 Continue if the client waits for this response before sending a body (RFC 9110 §10.1.1). */
  startBody(): void {
    this.#continued = this.#head.section.expectsContinue && !this.#responseStarted;
    if (this.#continued) this.#writer.continue();
  }

  /** Called when the receiver has used part of the body. Resumes reading if the buffer has capacity. */
  consumed(): void {
    if (this.#reader.stage === "body") this.#pauseOrResume();
  }

  /**
   * Sends a complete response.
   *
   * @param fields - arrays of header fields, prepared or not
   * @param body - `undefined` if the status or the method does not allow a body
   * @throws TypeError for fields that HTTP does not allow, before sending anything
   */
  respond(httpStatus: number, fields: readonly HeaderFields[], body: Uint8Array | undefined): void {
    this.#decideWhetherLast();
    const isHead = this.#head.httpMethod === "HEAD";
    const isLengthInFields = isHead && body === undefined;
    const framing = isLengthInFields ? framingOfStream(this.#head, httpStatus, fields) : framingOf(httpStatus, body);
    const head = formatResponseHead(httpStatus, fields, framing, this.#connectionLines);
    this.#writer.respond(head, isHead || framing === "none" || framing === 0 ? undefined : body);
    this.#finish();
  }

  get #connectionLines(): string {
    return this.#isLast ? connectionCloseLine : this.#options.keepAliveLines;
  }

  /** Sends the head for a streamed body. Throws like {@link respond}. */
  begin(httpStatus: number, fields: readonly HeaderFields[]): void {
    const framing = framingOfStream(this.#head, httpStatus, fields);
    if (framing === "close") this.#isLast = true;
    this.#decideWhetherLast();
    const head = formatResponseHead(httpStatus, fields, framing, this.#connectionLines);
    this.#responseStarted = true;
    this.#writer.begin(head, this.#head.httpMethod === "HEAD" ? "none" : framing);
  }

  /** Sends a piece of the body. Returns whether the caller should wait for `onWritable` before sending more. */
  write(piece: Uint8Array): boolean {
    this.#writer.write(piece);
    // If the client has disconnected, its operating system responds to the write by resetting the connection.
    if (this.#clientClosed) this.#deadlines.restart();
    return this.#writer.congested;
  }

  /** Completes the response that {@link begin} has started. */
  end(trailer: HeaderFields | undefined): void {
    if (this.#writer.end(trailer)) this.#finish();
    else this.destroy();
  }

  /** Destroys the connection immediately. HTTP/1.1 has no other way to signal an incomplete response (RFC 9112 §8). */
  destroy(): void {
    this.socket.destroy();
  }

  /** Checks the timeouts. Called at regular intervals. @param nowMs - from `performance.now()` */
  checkTimeouts(nowMs: number): void {
    const { stage } = this.#reader;
    const dueAction = this.#deadlines.check({
      stage,
      headStarted: this.#reader.incoming.unusedBytes > 0,
      retired: this.#isRetired,
      clientClosed: this.#clientClosed,
      canProbe: this.#canProbe,
      responseStarted: this.#responseStarted,
      congested: this.#writer.congested,
      stalledMs: this.#backlog.stalledMs(nowMs),
    });
    if (dueAction === "destroy") this.destroy();
    else if (dueAction === "close") this.#linger();
    else if (dueAction === "probe") this.#writer.continue();
    else if (dueAction !== "nothing" && stage === "head") this.#reader.refuse(dueAction);
    else if (dueAction !== "nothing") this.onRequestError(dueAction);
    // While the socket is paused, only a write, even an empty one, shows that the client has reset the connection.
    else if (this.socket.isPaused() && !this.#writer.congested) this.socket.write("");
  }

  onHead(head: Http1RequestHead): void {
    this.#head = head;
    this.#deadlines.restart();
    if (!head.section.persistent || head.problem !== undefined) this.#isLast = true;
    // Each request gets a separate AsyncResource. On Node 22, a store that a handler sets with `enterWith` stays in the
    // resource in which the handler was called.
    this.#context.runInAsyncScope(() =>
      new AsyncResource("Http1Request").runInAsyncScope(this.#options.onRequest, undefined, this, head),
    );
  }

  onPiece(piece: Buffer, last: boolean): boolean {
    if (this.receiver !== undefined) return this.receiver.body?.onData(piece, last) === true;
    // The response is already complete, so the rest of the request body is dropped.
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
    this.#reader.abandon();
    if (receiver === undefined) this.#linger();
    else receiver.onRequestError(problem);
  }

  /** Receives bytes that were read from the socket. */
  receive(chunk: Buffer): void {
    const reader = this.#reader;
    if (reader.stage === "closed") return this.#drop(chunk.byteLength);
    const isFirst = reader.incoming.unusedBytes === 0;
    // Requests more data now, which avoids a `nextTick` that costs more than parsing a head.
    this.socket.read(0);
    const isKept = this.#read(chunk);
    if (!isKept && chunk.byteLength >= minFreedBytes) freeChunk(chunk);
    // The timeout for a request head starts with its first byte.
    if (isFirst && reader.stage === "head" && reader.incoming.unusedBytes > 0) this.#deadlines.restart();
    this.#pauseOrResume();
  }

  /** Continues to read, and returns whether the chunk was kept. An unexpected error closes the connection. */
  #read(chunk?: Buffer): boolean {
    try {
      return this.#reader.read(chunk);
    } catch (error) {
      // Stops the reader, so that a late response does not start the next request before the socket closes.
      this.#reader.stop();
      this.destroy();
      this.#options.onFault(error);
      return true;
    }
  }

  /** Reads while the buffers have capacity, because only reading shows that a client has disconnected. */
  #pauseOrResume(): void {
    const { socket } = this;
    const hasCapacity = this.#hasCapacity();
    if (hasCapacity !== socket.isPaused()) return;
    if (hasCapacity) socket.resume();
    else socket.pause();
  }

  #hasCapacity(): boolean {
    // Reads no requests while the client does not read responses, because reading would postpone the client's timeout.
    if (this.#writer.congested) return false;
    if (this.#reader.stage === "body") return this.receiver?.body?.isFull !== true;
    return this.#reader.stage !== "response" || this.#reader.incoming.unusedBytes <= maxAheadBytes;
  }

  #finish(): void {
    this.receiver = undefined;
    const canCloseImmediately = this.#canCloseImmediately();
    // Frees the request head, which would otherwise stay in memory while the connection is idle.
    this.#head = emptyHead;
    this.#continued = this.#responseStarted = false;
    if (canCloseImmediately) return this.destroy();
    if (this.#isLast) return this.#linger();
    if (this.#reader.stage === "response") this.#next();
    // The reader drops the rest of the request body when more bytes arrive.
    else this.#pauseOrResume();
    this.#deadlines.restart();
  }

  // Whether the response is sent, and the client has announced that it sends nothing more, so that no unread bytes can
  // reset the connection. Lingering takes twice the CPU time.
  #canCloseImmediately(): boolean {
    const { section, problem } = this.#head;
    return (
      !section.persistent &&
      section.bodyBytes === 0 &&
      problem === undefined &&
      this.#reader.incoming.unusedBytes === 0 &&
      this.#writer.isSent &&
      !("encrypted" in this.socket)
    );
  }

  #next(): void {
    this.#reader.next();
    if (this.#reader.incoming.unusedBytes > 0 || this.#clientClosed || this.socket.isPaused())
      queueMicrotask(() => this.#context.runInAsyncScope(() => this.#continueReading()));
  }

  #continueReading(): void {
    if (this.#reader.stage === "head") this.#read();
    const { stage } = this.#reader;
    // The client has closed its side, so the rest of the body will not arrive.
    if (stage === "body" && this.#clientClosed) this.onRequestError(invalidHttpProblem());
    else if (stage === "head" && this.#clientClosed && !this.#writer.congested) this.#afterLastRequest();
    else this.#pauseOrResume();
  }

  #afterLastRequest(): void {
    if (this.#reader.incoming.unusedBytes > 0) this.#reader.refuse(invalidHttpProblem());
    else this.#linger();
  }

  // Closes our side, and continues to read for a while. Closing a socket with unread bytes resets the connection, and
  // clients that read only after sending the whole request would lose the response (RFC 9112 §9.6).
  #linger(): void {
    this.#reader.stop();
    this.#deadlines.restart();
    this.#writer.close();
    this.#pauseOrResume();
  }

  #drop(bytes: number): void {
    if ((this.#droppedBytes += bytes) > maxLingerBytes) this.destroy();
  }

  /** Called when the client has closed its side. {@link checkTimeouts} detects whether the client still reads. */
  #onEnd(): void {
    this.#clientClosed = true;
    this.#deadlines.restart();
    this.#continueReading();
    this.#probe(minProbeMs);
  }

  /**
   * Sends interim responses, because a FIN does not show whether the client still reads. A client that has disconnected
   * resets the connection on the first one, so that the next one fails. {@link checkTimeouts} continues the probes.
   */
  #probe(nextMs: number): void {
    if (this.receiver === undefined || !this.#canProbe || this.#writer.congested || this.socket.destroyed) return;
    this.#writer.continue();
    if (nextMs <= maxProbeMs) setTimeout(() => this.#probe(nextMs * 4), nextMs).unref();
  }

  // All clients except HTTP/1.0 clients accept unexpected interim responses (RFC 9110 §15.2).
  get #canProbe(): boolean {
    return this.#head.section.httpVersion === "1.1" && !this.#responseStarted;
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
    this.#context.runInAsyncScope(() => this.#continueReading());
  }

  #decideWhetherLast(): void {
    const { stage, incoming } = this.#reader;
    const canPersist = stage === "body" ? this.#isRemainderSmall() : !this.#isDraining || incoming.unusedBytes > 0;
    if (!canPersist) this.#isLast = true;
  }

  /** Returns whether the rest of the body is small enough to read and drop before the next request. */
  #isRemainderSmall(): boolean {
    // A client that waits for 100 Continue and gets none may send its body or omit it.
    if (this.#isDraining || (this.#head.section.expectsContinue && !this.#continued)) return false;
    return this.#reader.remainingBodyBytes <= maxUnreadBodyBytes;
  }
}

// Maximum bytes that are read ahead while a response is pending. Node reads at most 64 KiB from a socket at a time.
const maxAheadBytes = 64 * 1024;

// Milliseconds before the second and the last probe. A reset takes a round trip, which rarely exceeds 400 ms.
const minProbeMs = 25;
const maxProbeMs = 400;
