import type { Socket } from "node:net";
import { BodyPieces, encodeBlock, ErrorCode, type Http2Stream, type StreamReceiver } from "../http2/index.ts";
import type { Peer } from "./admit.ts";
import { type AbortListener, type BodyReceiver, type Exchange, unreadBodyBytesMax } from "./exchange.ts";
import { goneAway, resetError } from "./gone-away.ts";
import { type HeaderFields, readField } from "./header-fields.ts";
import { peerOf } from "./http1-exchange.ts";

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
  listener: AbortListener | undefined;
  readonly #stream: Http2Stream;
  readonly #socket: Socket;
  #complete = false;
  #receiver: BodyReceiver | undefined;
  #limitBytes = 0;
  /** What has come in and is not read yet. */
  #pieces: BodyPieces | undefined;
  /** Bytes that came in after the answer was complete. */
  #unreadBytes = 0;
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

  readBody(limitBytes: number, receiver: BodyReceiver): void {
    if (this.bodyEmpty) return receiver.received(empty);
    const held = this.#pieces?.bytes ?? 0;
    if ((this.#stream.head.contentLength ?? 0) > limitBytes || held > limitBytes) return receiver.received(undefined);
    this.#limitBytes = limitBytes;
    this.#receiver = receiver;
    this.#stream.bodyAwaited = true;
    if (held === 0) this.#continue();
    // What came in while the request was being admitted was held back; from here on it is used.
    if (held > 0) this.#stream.consumed(held);
    if (this.#stream.remoteEnded) this.onEnd();
  }

  streamBody(): AsyncIterable<Uint8Array> {
    if (this.#pieces === undefined) this.#continue();
    const next = (): Promise<IteratorResult<Uint8Array>> => {
      const piece = this.#pieces?.shift();
      if (piece !== undefined) {
        this.#stream.consumed(piece.byteLength);
        return Promise.resolve({ done: false, value: piece });
      }
      const dropped = this.#unreadBytes > 0;
      if (this.#stream.remoteEnded && !dropped) return Promise.resolve({ done: true, value: undefined });
      if (this.gone || dropped) return Promise.reject(goneAway());
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
    const receiver = this.#receiver;
    if (receiver === undefined) return this.#hold(piece);
    this.#stream.consumed(bytes);
    if (bytes + (this.#pieces?.bytes ?? 0) > this.#limitBytes) {
      this.#receiver = undefined;
      receiver.received(undefined);
    } else if (this.#pieces === undefined && this.#stream.remoteEnded) {
      // All of the body at once, which is what most bodies are.
      this.#receiver = undefined;
      receiver.received(piece);
    } else this.#hold(piece);
  }

  onEnd(): void {
    this.#pull?.resolve({ done: true, value: undefined });
    this.#pull = undefined;
    const receiver = this.#receiver;
    this.#receiver = undefined;
    receiver?.received(this.#pieces?.takeAll() ?? empty);
  }

  onReset(code: number): void {
    this.gone = true;
    this.#receiver = undefined;
    const reason = resetError(code);
    this.#pull?.reject(reason);
    this.#pull = undefined;
    this.#drained?.();
    if (!this.#complete) this.listener?.aborted(reason);
  }

  onWritable(): void {
    const drained = this.#drained;
    this.#drained = undefined;
    drained?.();
  }

  /** RFC 9110 §10.1.1: only now that the body is wanted is the client told to send it, and not if it has done so. */
  #continue(): void {
    const { head, remoteEnded } = this.#stream;
    if (head.expectsContinue && !remoteEnded) this.#stream.sendHeaders([statusBlock(100)], false);
  }

  #sendHeader(httpStatus: number, fields: HeaderFields, length: HeaderFields, endStream: boolean): void {
    const parts = [statusBlock(httpStatus), blockOf(fields), dateBlock()];
    if (length.length > 0) parts.push(encodeBlock(length));
    if (this.addedFields.length > 0) parts.push(encodeBlock(this.addedFields));
    // Only once the fields are known to be such that they can be sent.
    this.httpStatus = httpStatus;
    this.#stream.sendHeaders(parts, endStream);
  }

  #hold(piece: Uint8Array): void {
    (this.#pieces ??= new BodyPieces()).add(piece);
  }

  /** Lets go of the call; what still comes in of the body is dropped. */
  #finish(): void {
    this.#complete = true;
    this.#receiver = undefined;
    if (!this.#stream.remoteEnded) this.#stream.discard();
  }

  #discard(bytes: number): void {
    this.#stream.consumed(bytes);
    this.#unreadBytes += bytes;
    // RFC 9113 §8.1: after a complete answer the server may ask the client to stop sending.
    if (this.#unreadBytes > unreadBodyBytesMax && this.#stream.localEnded) this.#stream.reset(ErrorCode.noError);
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
