import type { Socket } from "node:net";
import {
  encodeBlock,
  encodeStatus,
  ErrorCode,
  type Http2RequestHead,
  type Http2Stream,
  type StreamReceiver,
} from "../../http2/index.ts";
import { type BodyReceiver, type HeaderFields, type Peer, PreparedHeaderFields } from "../index.ts";
import { peerOf } from "./peer.ts";
import { dateFields, SocketExchange } from "./socket-exchange.ts";
import { resetError } from "./reset-error.ts";

/** An exchange carried by a stream of the gateway's own HTTP/2. */
export class OwnHttp2Exchange extends SocketExchange implements StreamReceiver {
  declare readonly connection: Socket;
  readonly #stream: Http2Stream;
  readonly #head: Http2RequestHead;

  constructor(stream: Http2Stream, head: Http2RequestHead, socket: Socket) {
    const { method: httpMethod, path: target, url, fields, common } = head;
    super(socket, { httpMethod, target, url, fields, common, bodyEmpty: stream.remoteEnded });
    this.#head = head;
    this.#stream = stream;
    stream.receiver = this;
  }

  get peer(): Peer {
    return peerOf(this.connection);
  }

  get httpVersion(): "2.0" {
    return "2.0";
  }

  protected get bodyBytes(): number {
    return this.#head.contentLength ?? 0;
  }

  override readBody(limitBytes: number, receiver: BodyReceiver): void {
    this.#stream.bodyAwaited = true;
    super.readBody(limitBytes, receiver);
  }

  answer(httpStatus: number, fields: HeaderFields, body?: Uint8Array, trailer?: HeaderFields): void {
    const stream = this.#stream;
    if (this.gone || this.httpStatus !== 0) return;
    const length = trailer === undefined && body !== undefined ? ["content-length", String(body.byteLength)] : none;
    const parts = this.#headerParts(httpStatus, fields, length);
    const trailerBlock = trailer === undefined ? undefined : blockOf(trailer);
    // Set only after all fields have been encoded, which may fail.
    this.httpStatus = httpStatus;
    this.complete();
    const hasBody = body !== undefined && body.byteLength > 0 && this.httpMethod !== "HEAD";
    stream.answer(parts, hasBody ? body : undefined, trailerBlock);
  }

  begin(httpStatus: number, fields: HeaderFields): void {
    if (this.gone || this.httpStatus !== 0) return;
    const parts = this.#headerParts(httpStatus, fields, none);
    this.httpStatus = httpStatus;
    this.#stream.sendHeaders(parts, false);
  }

  end(trailer?: HeaderFields): void {
    const trailerBlock = trailer === undefined || trailer.length === 0 ? undefined : blockOf(trailer);
    this.complete();
    this.#stream.end(undefined, trailerBlock);
  }

  reset(): void {
    this.#stream.reset(ErrorCode.internalError);
  }

  onReset(code: number): void {
    this.lose(resetError(code));
  }

  protected send(piece: Uint8Array): boolean {
    this.#stream.sendData(piece);
    return this.#stream.queuedBytes > 0;
  }

  protected consumed(bytes: number): void {
    this.#stream.consumed(bytes);
  }

  protected wanted(): void {
    if (this.#head.expectsContinue && !this.#stream.remoteEnded) this.#stream.sendHeaders([statusBlock(100)], false);
  }

  #headerParts(httpStatus: number, fields: HeaderFields, length: HeaderFields): readonly Uint8Array[] {
    const parts = [statusBlock(httpStatus), blockOf(fields), blockOf(dateFields())];
    if (length.length > 0) parts.push(encodeBlock(length));
    if (this.addedFields.length > 0) parts.push(encodeBlock(this.addedFields));
    return parts;
  }
}

const none: HeaderFields = [];
const empty = new Uint8Array(0);

function blockOf(fields: HeaderFields): Uint8Array {
  if (fields.length === 0) return empty;
  return fields instanceof PreparedHeaderFields ? (fields.block ??= encodeBlock(fields)) : encodeBlock(fields);
}

const statusBlocks = new Map<number, Uint8Array>();

function statusBlock(httpStatus: number): Uint8Array {
  let block = statusBlocks.get(httpStatus);
  if (block === undefined) statusBlocks.set(httpStatus, (block = encodeStatus(httpStatus)));
  return block;
}
