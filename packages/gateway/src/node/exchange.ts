import type { Readable, Writable } from "node:stream";
import {
  type BodySource,
  BaseExchange,
  type ExchangeHead,
  type HttpProblem,
  type RequestBody,
} from "../exchange/index.ts";
import { AwaitedBody } from "../listen/index.ts";

/** The connection of the gateway's own server of node's that carries an exchange. */
export interface ExchangeOwner {
  /** Whether the response that begins now is the last one of the connection. */
  readonly isLast: boolean;
  /** Milliseconds for which the client may go on sending after that. */
  readonly lingerMs: number;
  /** Called when some of a response has been written. */
  onWritten(): void;
}

/**
 * An exchange whose request and answer are streams of node's.
 *
 * All share their event listeners, which find the exchange under a symbol of the stream. Closures would keep each call
 * alive for as long as node keeps its stream. That is longer than young objects live, and doubles the time of garbage
 * collection.
 */
export abstract class NodeExchange extends BaseExchange implements BodySource {
  readonly body: RequestBody | undefined;
  readonly #request: Carrying<Readable>;
  readonly #response: Carrying<Answer>;
  protected readonly owner: ExchangeOwner | undefined;
  #isReading = false;

  /**
   * @param bodyBytes - the length of the body by the header: `undefined` without a body, 0 if it is not known
   * @param owner - `undefined` in a server of the program
   */
  constructor(
    request: Readable,
    response: Answer,
    head: ExchangeHead,
    bodyBytes: number | undefined,
    owner: ExchangeOwner | undefined,
  ) {
    super(head);
    this.owner = owner;
    this.body = bodyBytes === undefined ? undefined : new AwaitedBody(this, bodyBytes);
    this.#request = request;
    this.#response = response;
    this.#request[exchangeKey] = this;
    this.#response[exchangeKey] = this;
    response.on("close", onClose);
  }

  get isMounted(): boolean {
    return this.owner === undefined;
  }

  /** Ends the exchange because the rest of its request cannot be read. */
  breakOff(problem: HttpProblem): void {
    this.abort(problem);
  }

  /** Returns why the response has closed before the answer was complete. */
  protected abstract closeProblem(): HttpProblem;

  /** A stream may have closed, and be about to say so; or the program may have begun an answer of its own. */
  protected override get isOpen(): boolean {
    const { destroyed, headersSent } = this.#response;
    return super.isOpen && !destroyed && (this.httpStatus !== 0 || !headersSent);
  }

  startBody(): void {
    if (this.#isReading) return;
    this.#isReading = true;
    // A listener alone does not start a stream that was paused before the gateway got it.
    this.#request.on("data", onData).on("end", onEnd).resume();
  }

  consumed(_bytes: number): void {
    if (this.body?.isFull !== true && this.#request.isPaused()) this.#request.resume();
  }

  protected sendPiece(piece: Uint8Array): boolean {
    const isTaken = this.#response.write(piece);
    this.owner?.onWritten();
    if (!isTaken) this.#response.once("drain", onDrain);
    return !isTaken;
  }

  /** Also drops the rest of the body as it arrives: node frees no stream that is not read to its end. */
  protected override complete(): void {
    super.complete();
    this.owner?.onWritten();
    if (this.body === undefined || this.body.ended) return;
    this.startBody();
    this.#request.resume();
  }

  /** Called when the response has closed. */
  closed(): void {
    this.#request[exchangeKey] = undefined;
    this.#response[exchangeKey] = undefined;
    if (this.isComplete) return;
    this.abort(this.closeProblem());
    // Node keeps what it has read ahead for as long as there is the stream.
    while (this.#request.read() !== null);
  }
}

const key: unique symbol = Symbol("connection");

/** Returns what stands for a socket or a session to the program, which could also end those. */
export function keyOf(connection: object & { [key]?: object }): object {
  return (connection[key] ??= {});
}

/** A stream for an answer, which also knows of its header. */
type Answer = Writable & { readonly headersSent: boolean };

const exchangeKey: unique symbol = Symbol("exchange");
type Carrying<Stream> = Stream & { [exchangeKey]?: NodeExchange | undefined };

function onData(this: Carrying<Readable>, piece: Uint8Array): void {
  const body = this[exchangeKey]?.body;
  body?.onData(piece, false);
  if (body?.isFull === true) this.pause();
}

function onEnd(this: Carrying<Readable>): void {
  // node also ends the body of a stream that was reset, or whose connection ended; that body is incomplete.
  if (!this.closed) this[exchangeKey]?.body?.onEnd();
}

function onDrain(this: Carrying<Writable>): void {
  this[exchangeKey]?.onWritable();
}

function onClose(this: Carrying<Writable>): void {
  this[exchangeKey]?.closed();
}
