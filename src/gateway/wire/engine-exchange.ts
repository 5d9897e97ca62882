import type { Socket } from "node:net";
import type { ConnectError } from "@connectrpc/connect";
import { encodeBlock, ErrorCode, type Http2Stream, type StreamReceiver } from "../http2/index.ts";
import type { Peer } from "./admit.ts";
import { type Exchange, unreadBodyBytesMax } from "./exchange.ts";
import { goneAway, resetError } from "./gone-away.ts";
import { type HeaderFields, readField } from "./header-fields.ts";
import { joinBytes, peerOf } from "./http1-exchange.ts";

interface PendingRead {
  readonly resolve: (result: IteratorResult<Uint8Array>) => void;
  readonly reject: (reason: unknown) => void;
}

/** An exchange carried by a stream of the gateway's own HTTP/2 engine. */
export class EngineExchange implements Exchange, StreamReceiver {
  readonly httpVersion = "2.0";
  readonly httpMethod: string;
  readonly target: string;
  readonly fields: HeaderFields;
  readonly bodyEmpty: boolean;
  httpStatus = 0;
  gone = false;
  addedFields: HeaderFields = none;
  aborted: ((reason: ConnectError) => void) | undefined;
  readonly #stream: Http2Stream;
  readonly #socket: Socket;
  #complete = false;
  #receive: ((body: Uint8Array | undefined) => void) | undefined;
  #limitBytes = 0;
  #bytes = 0;
  // What has come in and is not read yet, in one piece as a rule.
  #first: Uint8Array | undefined;
  #further: Uint8Array[] | undefined;
  #pull: PendingRead | undefined;
  #drained: (() => void) | undefined;

  constructor(stream: Http2Stream, socket: Socket) {
    const { method, path, fields } = stream.head;
    this.httpMethod = method;
    this.target = path;
    this.fields = fields;
    this.bodyEmpty = stream.remoteEnded;
    this.#stream = stream;
    this.#socket = socket;
    stream.receiver = this;
  }

  get origin(): string {
    const { authority, scheme } = this.#stream.head;
    return `${scheme}://${authority ?? readField(this.fields, "host") ?? ""}`;
  }

  get peer(): Peer {
    return peerOf(this.#socket);
  }

  get connection(): object {
    return this.#socket;
  }

  readBody(limitBytes: number, receive: (body: Uint8Array | undefined) => void): void {
    if (this.bodyEmpty) return receive(empty);
    if ((this.#stream.head.contentLength ?? 0) > limitBytes || this.#bytes > limitBytes) return receive(undefined);
    this.#limitBytes = limitBytes;
    this.#receive = receive;
    // What came in while the request was being admitted was held back; from here on it is used.
    if (this.#bytes > 0) this.#stream.consumed(this.#bytes);
    if (this.#stream.remoteEnded) this.onEnd();
  }

  streamBody(): AsyncIterable<Uint8Array> {
    const next = (): Promise<IteratorResult<Uint8Array>> => {
      const piece = this.#takePiece();
      if (piece !== undefined) {
        this.#stream.consumed(piece.byteLength);
        return Promise.resolve({ done: false, value: piece });
      }
      if (this.#stream.remoteEnded) return Promise.resolve({ done: true, value: undefined });
      if (this.gone) return Promise.reject(goneAway());
      return new Promise((resolve, reject) => {
        this.#pull = { resolve, reject };
      });
    };
    return { [Symbol.asyncIterator]: () => ({ next }) };
  }

  answer(httpStatus: number, fields: HeaderFields, body?: Uint8Array, trailer?: HeaderFields): void {
    const stream = this.#stream;
    if (this.gone || this.httpStatus !== 0) return;
    const length = trailer === undefined && body !== undefined ? ["content-length", String(body.byteLength)] : none;
    const hasBody = body !== undefined && body.byteLength > 0 && this.httpMethod !== "HEAD";
    this.#sendHeader(httpStatus, fields, length, !hasBody && trailer === undefined);
    if (hasBody || trailer !== undefined) {
      stream.end(hasBody ? body : undefined, trailer === undefined ? undefined : blockOf(trailer));
    }
    this.#finish();
  }

  begin(httpStatus: number, fields: HeaderFields): void {
    if (!this.gone && this.httpStatus === 0) this.#sendHeader(httpStatus, fields, none, false);
  }

  write(piece: Uint8Array): Promise<void> {
    if (this.gone) return Promise.reject(goneAway());
    this.#stream.sendData(piece);
    if (this.#stream.queuedBytes === 0) return ready;
    return new Promise((resolve, reject) => {
      this.#drained = () => {
        if (this.gone) reject(goneAway());
        else resolve();
      };
    });
  }

  end(trailer?: HeaderFields): void {
    this.#stream.end(undefined, trailer === undefined || trailer.length === 0 ? undefined : blockOf(trailer));
    this.#finish();
  }

  reset(): void {
    this.#stream.reset(ErrorCode.internalError);
  }

  onData(piece: Uint8Array): void {
    const bytes = piece.byteLength;
    if (this.#complete) return this.#discard(bytes);
    if (this.#pull !== undefined) {
      const { resolve } = this.#pull;
      this.#pull = undefined;
      this.#stream.consumed(bytes);
      return resolve({ done: false, value: piece });
    }
    this.#bytes += bytes;
    const receive = this.#receive;
    if (receive !== undefined) this.#stream.consumed(bytes);
    if (receive !== undefined && this.#bytes > this.#limitBytes) {
      this.#receive = undefined;
      receive(undefined);
    } else if (this.#first === undefined) this.#first = piece;
    else (this.#further ??= [this.#first]).push(piece);
  }

  onEnd(): void {
    this.#pull?.resolve({ done: true, value: undefined });
    this.#pull = undefined;
    const receive = this.#receive;
    this.#receive = undefined;
    const further = this.#further;
    receive?.(further === undefined ? (this.#first ?? empty) : joinBytes(further, this.#bytes));
  }

  onReset(code: number): void {
    this.gone = true;
    this.#receive = undefined;
    const reason = resetError(code);
    this.#pull?.reject(reason);
    this.#pull = undefined;
    this.#drained?.();
    if (!this.#complete) this.aborted?.(reason);
  }

  onWritable(): void {
    const drained = this.#drained;
    this.#drained = undefined;
    drained?.();
  }

  #sendHeader(httpStatus: number, fields: HeaderFields, length: HeaderFields, endStream: boolean): void {
    this.httpStatus = httpStatus;
    const parts = [statusBlock(httpStatus), blockOf(fields), dateBlock()];
    if (length.length > 0) parts.push(encodeBlock(length));
    if (this.addedFields.length > 0) parts.push(encodeBlock(this.addedFields));
    this.#stream.sendHeaders(parts, endStream);
  }

  /** Lets go of the call; what still comes in of the body is dropped. */
  #finish(): void {
    this.#complete = true;
    this.#receive = undefined;
    const held = this.#bytes;
    this.#bytes = 0;
    if (held > 0 && !this.#stream.remoteEnded) this.#discard(0);
  }

  #discard(bytes: number): void {
    this.#stream.consumed(bytes);
    this.#bytes += bytes;
    // RFC 9113 §8.1: after a complete answer the server may ask the client to stop sending.
    if (this.#bytes > unreadBodyBytesMax && this.#stream.localEnded) this.#stream.reset(ErrorCode.noError);
  }

  #takePiece(): Uint8Array | undefined {
    const further = this.#further;
    if (further !== undefined && further.length > 0) {
      const piece = further.shift();
      if (further.length === 0) this.#further = this.#first = undefined;
      return piece;
    }
    const piece = this.#first;
    this.#first = undefined;
    return piece;
  }
}

const ready = Promise.resolve();
const none: HeaderFields = [];
const empty = new Uint8Array(0);

// Header sections that are the same for every call are encoded once. They are known by being frozen: only
// constants are, and what is frozen cannot come to mean something else.
const encodedBlocks = new WeakMap<HeaderFields, Uint8Array>();

function blockOf(fields: HeaderFields): Uint8Array {
  if (fields.length === 0) return empty;
  const known = encodedBlocks.get(fields);
  if (known !== undefined) return known;
  const block = encodeBlock(fields);
  if (Object.isFrozen(fields)) encodedBlocks.set(fields, block);
  return block;
}

const statusBlocks = new Map<number, Uint8Array>();

function statusBlock(httpStatus: number): Uint8Array {
  let block = statusBlocks.get(httpStatus);
  if (block === undefined) statusBlocks.set(httpStatus, (block = encodeBlock([":status", String(httpStatus)])));
  return block;
}

let dateSecond = 0;
let encodedDate: Uint8Array = empty;

/** RFC 9110 §6.6.1: a server that has a clock says when an answer was made, to the second. */
function dateBlock(): Uint8Array {
  const second = Math.trunc(Date.now() / 1000);
  if (second !== dateSecond) {
    dateSecond = second;
    encodedDate = encodeBlock(["date", new Date(second * 1000).toUTCString()]);
  }
  return encodedDate;
}
