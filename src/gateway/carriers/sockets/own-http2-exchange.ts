import type { Socket } from "node:net";
import { BodyPieces, encodeBlock, ErrorCode, type Http2Stream, type StreamReceiver } from "../../http2/index.ts";
import {
  type AbortReceiver,
  type BodyReceiver,
  CommonFields,
  type Exchange,
  goneAway,
  type HeaderFields,
  type Peer,
  PreparedFields,
  readField,
  WholeBody,
} from "../index.ts";
import { peerOf } from "./peer.ts";
import { resetError } from "./reset-error.ts";
import { unreadBodyBytesMax } from "./unread-body.ts";

interface PendingRead {
  readonly resolve: (result: IteratorResult<Uint8Array>) => void;
  readonly reject: (reason: unknown) => void;
}

/** An exchange carried by a stream of the gateway's own HTTP/2. */
export class OwnHttp2Exchange implements Exchange, StreamReceiver {
  readonly httpVersion = "2.0";
  readonly httpMethod: string;
  readonly target: string;
  readonly origin: string;
  readonly connection: object;
  readonly fields: HeaderFields;
  readonly common: CommonFields;
  readonly bodyEmpty: boolean;
  httpStatus = 0;
  gone = false;
  addedFields: HeaderFields = none;
  abortReceiver: AbortReceiver | undefined;
  readonly #stream: Http2Stream;
  readonly #socket: Socket;
  #complete = false;
  #receiver: BodyReceiver | undefined;
  #limitBytes = 0;
  /** The part of the body that has arrived and was not read yet. */
  #pieces: BodyPieces | undefined;
  /** The part of the body that has arrived for {@link readBody}. */
  #whole: WholeBody | undefined;
  /** Bytes of body that were not read before the answer was complete, or arrived after it. */
  #unreadBytes = 0;
  #pull: PendingRead | undefined;
  #drained: (() => void) | undefined;

  constructor(stream: Http2Stream, socket: Socket) {
    const { method, path, fields, scheme, authority } = stream.head;
    this.httpMethod = method;
    this.target = path;
    this.fields = fields;
    this.common = new CommonFields(fields);
    this.origin = `${scheme}://${authority ?? this.common.host ?? ""}`;
    this.connection = socket;
    this.bodyEmpty = stream.remoteEnded;
    this.#stream = stream;
    this.#socket = socket;
    stream.receiver = this;
  }

  get peer(): Peer {
    return peerOf(this.#socket);
  }

  get(name: string): string | null {
    return readField(this.fields, name);
  }

  readBody(limitBytes: number, receiver: BodyReceiver): void {
    if (this.bodyEmpty) return receiver.received(empty);
    const held = this.#pieces?.bytes ?? 0;
    if ((this.#stream.head.contentLength ?? 0) > limitBytes || held > limitBytes) return receiver.received(undefined);
    // What arrived while the request was being admitted was held back, and is used from here on.
    const before = this.#pieces?.takeAll();
    if (held > 0) this.#stream.consumed(held);
    if (this.#stream.remoteEnded) return receiver.received(before ?? empty);
    this.#limitBytes = limitBytes;
    this.#receiver = receiver;
    this.#stream.bodyAwaited = true;
    if (before === undefined) this.#continue();
    else this.#collect(receiver, before);
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
    const parts = this.#headerParts(httpStatus, fields, length);
    const trailerBlock = trailer === undefined ? undefined : blockOf(trailer);
    // Set only after the fields turned out to be encodable.
    this.httpStatus = httpStatus;
    this.#finish();
    const hasBody = body !== undefined && body.byteLength > 0 && this.httpMethod !== "HEAD";
    stream.answer(parts, hasBody ? body : undefined, trailerBlock);
  }

  begin(httpStatus: number, fields: HeaderFields): void {
    if (this.gone || this.httpStatus !== 0) return;
    const parts = this.#headerParts(httpStatus, fields, none);
    this.httpStatus = httpStatus;
    this.#stream.sendHeaders(parts, false);
  }

  write(piece: Uint8Array): void | Promise<void> {
    if (this.gone) return Promise.reject(goneAway());
    this.#stream.sendData(piece);
    if (this.#stream.queuedBytes === 0) return;
    return new Promise((resolve, reject) => {
      this.#drained = () => {
        if (this.gone) reject(goneAway());
        else resolve();
      };
    });
  }

  end(trailer?: HeaderFields): void {
    const trailerBlock = trailer === undefined || trailer.length === 0 ? undefined : blockOf(trailer);
    this.#finish();
    this.#stream.end(undefined, trailerBlock);
  }

  reset(): void {
    this.#stream.reset(ErrorCode.internalError);
  }

  onData(piece: Uint8Array, last: boolean): void {
    const bytes = piece.byteLength;
    if (this.#complete) {
      this.#discard(bytes);
      if (last) this.onEnd();
      return;
    }
    if (this.#pull !== undefined) {
      const { resolve } = this.#pull;
      this.#pull = undefined;
      this.#stream.consumed(bytes);
      return resolve({ done: false, value: piece });
    }
    const receiver = this.#receiver;
    if (receiver === undefined) return this.#hold(piece);
    if (bytes + (this.#whole?.byteLength ?? 0) > this.#limitBytes) {
      this.#receiver = undefined;
      receiver.received(undefined);
    } else if (this.#whole === undefined && last) {
      // The whole body in one piece, as most bodies are.
      this.#receiver = undefined;
      receiver.received(piece);
    } else {
      this.#collect(receiver, piece);
      if (last) this.onEnd();
    }
    this.#stream.consumed(bytes);
  }

  onEnd(): void {
    // A body of which some was dropped is not complete.
    if (this.#unreadBytes > 0) this.#pull?.reject(goneAway());
    else this.#pull?.resolve({ done: true, value: undefined });
    this.#pull = undefined;
    const receiver = this.#receiver;
    const body = this.#whole?.bytes ?? empty;
    this.#receiver = undefined;
    this.#whole = undefined;
    receiver?.received(body);
  }

  onReset(code: number): void {
    this.gone = true;
    this.#receiver = undefined;
    const reason = resetError(code);
    this.#pull?.reject(reason);
    this.#pull = undefined;
    this.#drained?.();
    this.abortReceiver?.aborted(reason);
  }

  onWritable(): void {
    const drained = this.#drained;
    this.#drained = undefined;
    drained?.();
  }

  /**
   * RFC 9110 §10.1.1: the client is told to send the body only once it is wanted, and not if it has sent some already.
   */
  #continue(): void {
    const { head, remoteEnded } = this.#stream;
    if (head.expectsContinue && !remoteEnded) this.#stream.sendHeaders([statusBlock(100)], false);
  }

  #headerParts(httpStatus: number, fields: HeaderFields, length: HeaderFields): readonly Uint8Array[] {
    const parts = [statusBlock(httpStatus), blockOf(fields), dateBlock()];
    if (length.length > 0) parts.push(encodeBlock(length));
    if (this.addedFields.length > 0) parts.push(encodeBlock(this.addedFields));
    return parts;
  }

  #hold(piece: Uint8Array): void {
    (this.#pieces ??= new BodyPieces()).add(piece);
  }

  #collect(receiver: BodyReceiver, piece: Uint8Array): void {
    this.#whole ??= new WholeBody(this.#stream.head.contentLength ?? receiver.announcedBytes(piece));
    this.#whole.add(piece);
  }

  /** Releases the call and the unread part of the body; what still arrives of it is dropped. */
  #finish(): void {
    this.#complete = true;
    this.#receiver = undefined;
    this.#unreadBytes = this.#pieces?.bytes ?? this.#whole?.byteLength ?? 0;
    this.#pieces = undefined;
    this.#whole = undefined;
    if (!this.#stream.remoteEnded) this.#stream.discard();
  }

  #discard(bytes: number): void {
    this.#stream.consumed(bytes);
    this.#unreadBytes += bytes;
    // RFC 9113 §8.1: after a complete answer the server may ask the client to stop sending.
    if (this.#unreadBytes > unreadBodyBytesMax && this.#stream.answeredAtMs > 0) this.#stream.reset(ErrorCode.noError);
  }
}

const none: HeaderFields = [];
const empty = new Uint8Array(0);

function blockOf(fields: HeaderFields): Uint8Array {
  if (fields.length === 0) return empty;
  return fields instanceof PreparedFields ? (fields.block ??= encodeBlock(fields)) : encodeBlock(fields);
}

const statusBlocks = new Map<number, Uint8Array>();

function statusBlock(httpStatus: number): Uint8Array {
  let block = statusBlocks.get(httpStatus);
  if (block === undefined) statusBlocks.set(httpStatus, (block = encodeBlock([":status", String(httpStatus)])));
  return block;
}

let dateSecond = 0;
let encodedDate: Uint8Array = empty;

/** RFC 9110 §6.6.1: a server with a clock sends the date of each answer, to the second. */
function dateBlock(): Uint8Array {
  const second = Math.trunc(Date.now() / 1000);
  if (second !== dateSecond) {
    dateSecond = second;
    encodedDate = encodeBlock(["date", new Date(second * 1000).toUTCString()]);
  }
  return encodedDate;
}
