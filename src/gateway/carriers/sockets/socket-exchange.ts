import type { ConnectError } from "@connectrpc/connect";
import {
  type AbortReceiver,
  type BodyReceiver,
  type CommonHeaderFields,
  type Exchange,
  goneAway,
  type HeaderFields,
  type Peer,
  prepareHeaderFields,
  readHeaderField,
  CollectedBytes,
} from "../index.ts";
import { HeldBody, ownPiece } from "./held-body.ts";

interface PendingRead {
  readonly resolve: (result: IteratorResult<Uint8Array>) => void;
  readonly reject: (reason: unknown) => void;
}

/** A body that is read whole, as far as it has arrived. */
interface WholeRead {
  readonly receiver: BodyReceiver;
  readonly limitBytes: number;
  /** `undefined` before the first piece. */
  body: CollectedBytes | undefined;
}

/** The part of a request's head that every call needs. */
export interface ExchangeHead {
  readonly httpMethod: string;
  readonly target: string;
  readonly url: string;
  readonly fields: HeaderFields;
  readonly common: CommonHeaderFields;
  readonly bodyEmpty: boolean;
}

/**
 * The part of an exchange that all on sockets share, whether the gateway's own HTTP carries them or node's: reads the
 * body while it arrives, and waits until more of the answer may be written.
 *
 * What few calls need stays in the head, because a call that waits keeps its exchange in memory.
 */
export abstract class SocketExchange implements Exchange {
  abstract readonly httpVersion: Exchange["httpVersion"];
  abstract readonly peer: Peer;
  readonly httpMethod: string;
  readonly target: string;
  readonly url: string;
  readonly fields: HeaderFields;
  readonly common: CommonHeaderFields;
  readonly bodyEmpty: boolean;
  readonly connection: object;
  httpStatus = 0;
  gone = false;
  addedFields: HeaderFields = none;
  abortReceiver: AbortReceiver | undefined;
  /** Whether all of the body has arrived. */
  protected bodyEnded: boolean;
  /** Bytes of the body that were not read before the answer was complete, or arrived after it. */
  protected unreadBytes = 0;
  /** Whether the answer is complete; "cut" if some of the body has been dropped for it, or will be. */
  #complete: "no" | "yes" | "cut" = "no";
  /** The part of the body that has arrived and was not read yet. */
  #held: HeldBody | undefined;
  /** The read that {@link readBody} has begun. */
  #read: WholeRead | undefined;
  #pull: PendingRead | undefined;
  #drained: (() => void) | undefined;

  constructor(connection: object, { httpMethod, target, url, fields, common, bodyEmpty }: ExchangeHead) {
    this.httpMethod = httpMethod;
    this.target = target;
    this.url = url;
    this.fields = fields;
    this.common = common;
    this.bodyEmpty = bodyEmpty;
    this.connection = connection;
    this.bodyEnded = bodyEmpty;
  }

  /** Whether the answer is complete. */
  protected get isComplete(): boolean {
    return this.#complete !== "no";
  }

  get(name: string): string | null {
    return readHeaderField(this.fields, name);
  }

  /** Bytes of the body by its header; 0 if the header does not say. */
  protected abstract readonly bodyBytes: number;
  abstract answer(httpStatus: number, fields: HeaderFields, body?: Uint8Array, trailer?: HeaderFields): void;
  abstract begin(httpStatus: number, fields: HeaderFields): void;
  abstract end(trailer?: HeaderFields): void;
  abstract reset(): void;
  /** Sends a piece of the answer, and returns whether the client has to take some of it before more is sent. */
  protected abstract send(piece: Uint8Array): boolean;
  /** Notes that `bytes` of the body were used, so that the client may send as many more. */
  protected abstract consumed(bytes: number): void;
  /**
   * Called when the body is wanted, unless some of it has arrived. A client that waits for that is told to send it (RFC
   * 9110 §10.1.1).
   */
  protected abstract wanted(): void;

  readBody(limitBytes: number, receiver: BodyReceiver): void {
    const held = this.#held;
    if (this.bodyBytes > limitBytes || (held?.byteLength ?? 0) > limitBytes) return receiver.received(undefined);
    // What arrived while the request was being admitted was held back, and counts as consumed from here on.
    const before = held?.takeAll();
    if (before !== undefined) this.consumed(before.byteLength);
    if (this.bodyEnded) return receiver.received(before ?? empty);
    const read: WholeRead = { receiver, limitBytes, body: undefined };
    this.#read = read;
    if (before === undefined) this.wanted();
    else this.#collect(read, before);
  }

  streamBody(): AsyncIterable<Uint8Array> {
    if (this.#held === undefined) this.wanted();
    const next = (): Promise<IteratorResult<Uint8Array>> => {
      const held = this.#held?.shift();
      if (held !== undefined) {
        this.consumed(held.byteLength);
        return Promise.resolve({ done: false, value: held });
      }
      // Some of the body may have been dropped.
      if (this.gone || this.#complete === "cut") return Promise.reject(goneAway());
      if (this.bodyEnded) return Promise.resolve({ done: true, value: undefined });
      return new Promise((resolve, reject) => {
        this.#pull = { resolve, reject };
      });
    };
    return { [Symbol.asyncIterator]: () => ({ next }) };
  }

  write(piece: Uint8Array): void | Promise<void> {
    if (this.gone) return Promise.reject(goneAway());
    if (!this.send(piece)) return;
    return new Promise((resolve, reject) => {
      this.#drained = () => {
        if (this.gone) reject(goneAway());
        else resolve();
      };
    });
  }

  /** @returns whether the piece is kept; otherwise its memory may be freed */
  onData(piece: Uint8Array, last: boolean): boolean {
    const bytes = piece.byteLength;
    if (last) this.bodyEnded = true;
    if (this.#complete !== "no") {
      this.unreadBytes += bytes;
      this.consumed(bytes);
      return false;
    }
    if (this.#pull !== undefined) {
      const { resolve } = this.#pull;
      this.#pull = undefined;
      const own = ownPiece(piece);
      this.consumed(bytes);
      resolve({ done: false, value: own });
      return own === piece;
    }
    const read = this.#read;
    if (read === undefined) {
      (this.#held ??= new HeldBody()).add(piece);
      return false;
    }
    this.consumed(bytes);
    if (bytes + (read.body?.byteLength ?? 0) > read.limitBytes) {
      this.#read = undefined;
      read.receiver.received(undefined);
    } else if (read.body === undefined && last) {
      // The whole body in one piece, as most bodies are. Streams of node's tell only later that a piece was the last.
      this.#read = undefined;
      const own = ownPiece(piece);
      read.receiver.received(own);
      return own === piece;
    } else {
      this.#collect(read, piece);
      if (last) this.onEnd();
    }
    return false;
  }

  onEnd(): void {
    this.bodyEnded = true;
    this.#pull?.resolve({ done: true, value: undefined });
    this.#pull = undefined;
    const read = this.#read;
    this.#read = undefined;
    read?.receiver.received(read.body?.bytes ?? empty);
  }

  onWritable(): void {
    const drained = this.#drained;
    this.#drained = undefined;
    drained?.();
  }

  /** Ends the exchange, because the rest of its request will not come and no answer can arrive. */
  protected lose(reason: ConnectError): void {
    this.gone = true;
    // A call that is still being admitted, or a handler that takes its time, would keep it alive for as long.
    this.#held = undefined;
    this.#read = undefined;
    this.#pull?.reject(reason);
    this.#pull = undefined;
    this.onWritable();
    this.abortReceiver?.aborted(reason);
  }

  /** Releases the call and the unread part of the body; what still arrives of it is dropped. */
  protected complete(): void {
    this.unreadBytes = this.#held?.byteLength ?? 0;
    // A body of which some is dropped must not be taken for complete.
    this.#complete = this.bodyEnded && this.unreadBytes === 0 ? "yes" : "cut";
    if (this.#complete === "cut") this.#pull?.reject(goneAway());
    this.#pull = undefined;
    this.#held = undefined;
    this.#read = undefined;
  }

  #collect(read: WholeRead, piece: Uint8Array): void {
    read.body ??= new CollectedBytes(this.bodyBytes || read.receiver.announcedBytes(piece), read.limitBytes);
    read.body.add(piece);
  }
}

const none: HeaderFields = [];
const empty = new Uint8Array(0);

let dateSecond = 0;
let date: HeaderFields = none;

/** Returns the Date field, which a server with a clock sends with each answer (RFC 9110 §6.6.1). */
export function dateFields(): HeaderFields {
  const second = Math.trunc(Date.now() / 1000);
  if (second !== dateSecond) {
    dateSecond = second;
    date = prepareHeaderFields("date", new Date(second * 1000).toUTCString());
  }
  return date;
}
