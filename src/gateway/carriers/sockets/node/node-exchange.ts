import type { Readable, Writable } from "node:stream";
import type { ConnectError } from "@connectrpc/connect";
import { type ExchangeHead, SocketExchange } from "../socket-exchange.ts";

/**
 * An exchange whose request and answer are streams of node's.
 *
 * All share their event listeners, which find the exchange under a symbol of the stream. Closures would keep each call
 * alive for as long as node keeps its stream. That is longer than young objects live, and doubles the time of garbage
 * collection.
 */
export abstract class NodeExchange extends SocketExchange {
  readonly #request: Carrying<Readable>;
  readonly #response: Carrying<Writable>;
  #isListening = false;
  /** Bytes of the body that have arrived and were not read yet. */
  #heldBytes = 0;

  constructor(request: Readable, response: Writable, connection: object, head: ExchangeHead) {
    super(connection, head);
    this.#request = request;
    this.#response = response;
    this.#request[exchangeKey] = this;
    this.#response[exchangeKey] = this;
    response.on("close", NodeExchange.#onClose);
  }

  protected get bodyBytes(): number {
    return Number(this.common.contentLength ?? 0);
  }

  /** Returns the error of a call whose response has closed before the answer was complete. */
  protected abstract closeReason(): ConnectError;

  protected send(piece: Uint8Array): boolean {
    const response = this.#response;
    // It has closed, and is about to say so.
    if (response.destroyed || response.writableEnded) return true;
    if (response.write(piece)) return false;
    response.once("drain", NodeExchange.#onDrain);
    return true;
  }

  protected wanted(): void {
    this.#listen();
  }

  protected consumed(bytes: number): void {
    this.#heldBytes -= bytes;
    if (this.#heldBytes <= heldBytesMax && this.#request.isPaused()) this.#request.resume();
  }

  /** Also drops the rest of the body as it arrives: node frees no stream that is not read to its end. */
  protected override complete(): void {
    super.complete();
    if (this.bodyEnded) return;
    this.#heldBytes = 0;
    this.#listen();
    this.#request.resume();
  }

  /** Called when the response has closed. */
  protected closed(): void {
    this.#request[exchangeKey] = undefined;
    this.#response[exchangeKey] = undefined;
    if (this.isComplete) this.gone = true;
    else {
      this.lose(this.closeReason());
      // Node keeps what it has read ahead for as long as there is the stream.
      while (this.#request.read() !== null);
    }
  }

  #listen(): void {
    if (this.#isListening) return;
    this.#isListening = true;
    this.#request.on("data", NodeExchange.#onData).on("end", NodeExchange.#onEnd);
    // A listener alone does not start a stream that was paused before the gateway got it.
    this.#request.resume();
  }

  // The event listeners that all streams share.

  static readonly #onData = function (this: Carrying<Readable>, piece: Uint8Array): void {
    const exchange = this[exchangeKey];
    if (exchange === undefined) return;
    exchange.#heldBytes += piece.byteLength;
    exchange.onData(piece, false);
    if (exchange.#heldBytes > heldBytesMax) this.pause();
  };

  static readonly #onEnd = function (this: Carrying<Readable>): void {
    // node also ends the body of a stream that was reset, or whose connection ended; that body is incomplete.
    if (!this.closed) this[exchangeKey]?.onEnd();
  };

  static readonly #onDrain = function (this: Carrying<Writable>): void {
    this[exchangeKey]?.onWritable();
  };

  static readonly #onClose = function (this: Carrying<Writable>): void {
    this[exchangeKey]?.closed();
  };
}

const exchangeKey: unique symbol = Symbol("exchange");
type Carrying<Stream> = Stream & { [exchangeKey]?: NodeExchange | undefined };

/** Bytes of a body that are read ahead of the call. */
// As much as node itself reads ahead.
const heldBytesMax = 64 * 1024;
