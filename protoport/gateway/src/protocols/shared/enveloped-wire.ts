import type { Message } from "@bufbuild/protobuf";
import { Code, type ConnectError } from "@connectrpc/connect";
import { type BodyPlan, type Exchange, type HeaderFields, markSingleUse, noBytes } from "../../http/index.ts";
import { problem } from "../../protobuf/index.ts";
import { decompressQueued } from "../envelope/compression.ts";
import {
  compressedFlag,
  type Content,
  Envelope,
  envelopeBytes,
  envelopePrefixBytes,
  EnvelopeReader,
  isLargeEnvelope,
  readLargeEnvelope,
  readSingleEnvelope,
  type Take,
  toEnvelope,
  writeEnvelope,
} from "../envelope/envelope.ts";
import { readMessages } from "../envelope/message-splitter.ts";
import type { Codec } from "../formats.ts";
import { headerFieldsToSend, LazyHeaders, withOwnReserved } from "../lazy-headers.ts";
import type { StreamTraits, StreamWire, Wire } from "../protocol.ts";
import type { Rpc } from "../rpc.ts";
import type { CallFormat } from "./content-type.ts";
import type { MessageEncodings } from "./negotiation.ts";
import type { Timeout } from "./timeouts.ts";

/** The parsed header for a call with envelopes. */
export interface EnvelopedHeader {
  readonly encodings: MessageEncodings;
  readonly timeout: Timeout;
  /** The name of the header field for the response messages' encoding. */
  readonly encodingName: string;
  /** An error in header fields other than the encodings and the timeout. */
  readonly problem?: ConnectError | undefined;
}

/** The wire for calls with messages in envelopes, which are all gRPC and gRPC-Web calls, and Connect streams. */
export abstract class EnvelopedWire implements StreamWire {
  abstract readonly responseTrailer: LazyHeaders;
  readonly carries: Wire["carries"];
  readonly earlyEnd = undefined;
  readonly timeoutMs: number | undefined;
  readonly problem: ConnectError | undefined;
  readonly body: BodyPlan;
  readonly requestHeader: LazyHeaders;
  readonly responseHeader: LazyHeaders;
  protected readonly headerFields: HeaderFields;
  protected readonly exchange: Exchange;
  protected readonly rpc: Rpc;
  protected readonly codec: Codec;
  protected readonly encodings: MessageEncodings;

  /** @param binary - what a wire in the binary format carries */
  constructor(
    exchange: Exchange,
    rpc: Rpc,
    format: CallFormat,
    header: EnvelopedHeader,
    binary: Wire["carries"] = "envelopes",
  ) {
    const { codec, contentType } = format;
    const { encodings, timeout, encodingName } = header;
    const { response, acceptEncodingFields } = encodings;
    const encodingFields = response === undefined ? acceptEncodingFields : [encodingName, response.name];
    this.carries = codec.isBinary === true ? binary : "messages";
    this.exchange = exchange;
    this.rpc = rpc;
    this.codec = codec;
    this.encodings = encodings;
    this.timeoutMs = timeout.timeoutMs;
    this.problem = header.problem ?? encodings.problem ?? timeout.error;
    this.headerFields = encodingFields.length === 0 ? contentType : [...contentType, ...encodingFields];
    this.body = format.body;
    this.requestHeader = new LazyHeaders(exchange.fields);
    this.responseHeader = new LazyHeaders(this.headerFields);
  }

  get traits(): StreamTraits {
    return traits;
  }

  read<T>(body: Uint8Array, take: Take<T>): Message | T | Promise<Message | T> {
    return this.#open(readSingleEnvelope(body, this.rpc.options.readMaxBytes), take);
  }

  readParts(start: Uint8Array, rest: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> | undefined {
    if (this.carries === "messages" || !isLargeEnvelope(start)) return undefined;
    return readLargeEnvelope(new Uint8Array(start), rest, this.rpc.options.readMaxBytes);
  }

  readAll<T>(take: Take<T>, takePart?: (part: Uint8Array) => T): AsyncIterable<Message | T> {
    const { readMaxBytes } = this.rpc.options;
    const open = (envelope: Envelope): Message | T | Promise<Message | T> => this.#open(envelope, take);
    const part = this.carries === "messages" ? undefined : takePart;
    return readMessages(this.pieces(), new EnvelopeReader<Message | T>(readMaxBytes, open, part));
  }

  #open<T>(envelope: Envelope, take: Take<T>): Message | T | Promise<Message | T> {
    if (envelope.compressed) return this.#decompress(envelope).then((bytes) => this.#take(toEnvelope(bytes), take));
    return this.#take(envelope, take);
  }

  #take<T>(envelope: Envelope, take: Take<T>): Message | T {
    return this.carries === "messages" ? this.codec.decode(envelope.bytes) : take(envelope);
  }

  #decompress({ bytes }: Envelope): Promise<Uint8Array> {
    const { request } = this.encodings;
    // The gRPC compression document requires Internal for a compressed message without an encoding.
    if (request === undefined)
      throw problem("ERR_PROTOCOL", "the message is compressed, but the request names no encoding", {
        code: Code.Internal,
      });
    return decompressQueued(request, bytes, this.rpc.options.readMaxBytes, this.exchange);
  }

  protected pieces(): AsyncIterable<Uint8Array> {
    return this.exchange.body?.pieces() ?? noPieces;
  }

  encode(message: Content | Uint8Array): Uint8Array | Promise<Uint8Array> {
    if (message instanceof Envelope) return this.#encodeEnvelope(message);
    // Parts of a large message are never compressed.
    if (message instanceof Uint8Array) return this.#markForwarded(message);
    return this.envelop(this.codec.encode(message));
  }

  #encodeEnvelope(envelope: Envelope): Uint8Array | Promise<Uint8Array> {
    if (this.encodings.response !== undefined) return this.envelop(envelope.bytes);
    return this.#markForwarded(envelope.withPrefix);
  }

  #markForwarded(bytes: Uint8Array): Uint8Array {
    return this.rpc.callee.sendsParts ? markSingleUse(bytes) : bytes;
  }

  /** Writes an encoded message in an envelope, compressed if the client accepts it and the message is large enough. */
  protected envelop(bytes: Uint8Array): Uint8Array | Promise<Uint8Array> {
    const { response } = this.encodings;
    if (response === undefined || bytes.byteLength < this.rpc.options.compressMinBytes) return writeEnvelope(0, bytes);
    return response.compress(bytes).then((compressed) => writeEnvelope(compressedFlag, compressed));
  }

  headerToSend(header: Headers): HeaderFields {
    const fields = headerFieldsToSend(header, this.headerFields);
    return fields === this.headerFields ? fields : withOwnReserved(fields, this.headerFields);
  }

  write(message: Content, header: Headers, trailer: Headers): void | Promise<void> {
    return this.respondWith(this.encode(message), header, trailer);
  }

  protected respondWith(
    envelope: Uint8Array | Promise<Uint8Array>,
    header: Headers,
    trailer: Headers,
  ): void | Promise<void> {
    const respond = (body: Uint8Array): void => this.respond(this.headerToSend(header), body, trailer, undefined);
    return envelope instanceof Promise ? envelope.then(respond) : respond(envelope);
  }

  writeError(error: ConnectError): void {
    this.respond(this.headerToSend(this.responseHeader), noBytes, this.responseTrailer, error);
  }

  begin(header: HeaderFields): void {
    this.exchange.begin(200, header);
  }

  send(bytes: Uint8Array): void | Promise<void> {
    return this.exchange.write(bytes);
  }

  release(): void {}

  abstract end(trailer: Headers, error: ConnectError | undefined): void;
  abstract respond(header: HeaderFields, bytes: Uint8Array, trailer: Headers, error: ConnectError | undefined): void;
}

const traits: StreamTraits = { heartbeat: undefined, reportsErrorAtEnd: true, sendsHeaderEarly: false };

const noPieces: AsyncIterable<Uint8Array> = {
  [Symbol.asyncIterator]: () => ({ next: () => Promise.resolve({ done: true, value: undefined }) }),
};

/** Returns the plan for reading a body with one envelope. */
export function planEnvelope(codec: Codec, { options, callee }: Rpc): BodyPlan {
  const memory = codec.isBinary === true ? callee.memory : "own";
  return { limitBytes: envelopePrefixBytes + options.readMaxBytes, memory, announcedBytes: envelopeBytes };
}
